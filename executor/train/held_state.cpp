#include "executor/train/held_state.h"

#include <algorithm>

#include "sim/base/check.h"

namespace reckon {
namespace {

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

HeldState::HeldState(Trainer& trainer) : steps_done_(trainer.updates_done()) {
  for (const StateTensor& t : trainer.state()) tensors_.push_back({t.slice, copy_of(t.bytes)});
  for (const StateTensor& t : trainer.statistics())
    statistics_.push_back({t.slice, copy_of(t.bytes)});
  for (const StateTensor& t : trainer.statistics_before_step())
    statistics_before_.push_back({t.slice, copy_of(t.bytes)});
}

const HeldState::Tensor& HeldState::of(const std::vector<Tensor>& tensors,
                                       const TensorSlice& slice) {
  const auto found = std::ranges::find(tensors, slice, &Tensor::slice);
  RECKON_CHECK(found != tensors.end());  // the same network, held whole
  return *found;
}

std::optional<std::int64_t> share_held_state(Communicator& peers, Trainer& trainer,
                                             const HeldState* mine) {
  std::vector<std::int64_t> held(static_cast<std::size_t>(peers.size()));  // steps + 1
  if (mine != nullptr) held[static_cast<std::size_t>(peers.rank())] = mine->steps_done() + 1;
  peers.all_reduce(std::span(held));
  const auto newest = std::ranges::max_element(held);
  if (*newest == 0) return std::nullopt;
  const int root = static_cast<int>(newest - held.begin());
  const std::int64_t steps = *newest - 1;
  for (const RestoreTensor& target : trainer.restore(steps)) {
    if (peers.rank() == root)
      std::ranges::copy(HeldState::of(mine->tensors_, target.slice).bytes, target.bytes.begin());
    peers.broadcast(target.bytes, root);
  }
  if (mine == nullptr) return steps;
  // Behind an update of others all of this rank's passes of the step were over.
  const auto& own = mine->steps_done() == steps ? mine->statistics_before_ : mine->statistics_;
  for (const StateTensor& place : trainer.statistics()) {
    const auto bytes = std::span(HeldState::of(own, place.slice).bytes);
    trainer.set_statistic(place.slice.name, bytes);
  }
  return steps;
}

}  // namespace reckon
