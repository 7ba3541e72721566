#include "executor/train/held_state.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "executor/train/parameters.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

/// Which part of the model a rank has: the same number for the same slices of the same tensors.
std::int64_t model_part_of(const ParameterLayout& layout) {
  std::string text;
  for (const ParameterSlot& slot : layout.slots)
    for (const SlotSlice& slice : slices_of(slot, slot.name))
      text += slot.name + to_text(slice.tensor.box) + '\n';
  return std::bit_cast<std::int64_t>(XXH3_64bits(text.data(), text.size()));
}

/// What a rank needs and what it holds.
struct RankOffer {
  std::int64_t needs = 0, holds = 0;          // parts; 0: none
  std::array<std::int64_t, 2> steps{-1, -1};  // done in what it holds; -1: nothing
  std::int64_t optimizer_began = 0;           // the same on all that hold something

  bool has(std::int64_t part, std::int64_t of) const {
    return holds == part && std::ranges::find(steps, of) != steps.end();
  }
};

/// As all ranks know it of all. Collective.
std::vector<RankOffer> offers_of_all(Communicator& peers, const RankOffer& own) {
  constexpr std::size_t kNumbers = 5;
  const auto ranks = static_cast<std::size_t>(peers.size());
  std::vector<std::int64_t> numbers(kNumbers * ranks);
  const auto of = [&](std::size_t rank) { return std::span(numbers).subspan(kNumbers * rank); };
  const auto mine = of(static_cast<std::size_t>(peers.rank()));
  mine[0] = own.needs, mine[1] = own.holds, mine[2] = own.steps[0], mine[3] = own.steps[1];
  mine[4] = own.optimizer_began;
  peers.all_reduce(std::span(numbers));
  std::vector<RankOffer> offers;
  for (std::size_t r = 0; r < ranks; ++r)
    offers.push_back({.needs = of(r)[0],
                      .holds = of(r)[1],
                      .steps = {of(r)[2], of(r)[3]},
                      .optimizer_began = of(r)[4]});
  return offers;
}

std::vector<int> ranks_with(std::span<const RankOffer> offers, std::int64_t part,
                            std::int64_t steps) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < offers.size(); ++r)
    if (offers[r].has(part, steps)) ranks.push_back(int(r));
  return ranks;
}

/// Of those that a rank has made itself, the newest of which every part is held. What others have
/// made up for counts where somebody has it: then all ranks had their sums.
std::optional<std::int64_t> newest_whole(std::span<const RankOffer> offers) {
  std::vector<std::int64_t> candidates;
  for (const RankOffer& offer : offers)
    if (offer.steps[0] >= 0) candidates.push_back(offer.steps[0]);
  std::ranges::sort(candidates, std::greater());
  for (const std::int64_t steps : candidates)
    if (std::ranges::none_of(offers, [&](const RankOffer& offer) {
          return ranks_with(offers, offer.needs, steps).empty();
        }))
      return steps;
  return std::nullopt;
}

/// The tensors of a part in an order that who sends and who receives them know.
template <class Tensor>
std::vector<const Tensor*> in_order(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> ordered;
  for (const Tensor& t : tensors) ordered.push_back(&t);
  std::ranges::sort(
      ordered, {}, [](const Tensor* t) { return std::pair(t->slice.name, to_text(t->slice.box)); });
  return ordered;
}

/// A part's way to a rank that has none.
struct Transfer {
  int from = 0, to = 0;
};
/// In the order in which both sides go through them; those who hold a part take turns.
std::vector<Transfer> transfers_of(std::span<const RankOffer> offers, std::int64_t steps) {
  std::vector<Transfer> all;
  std::map<std::int64_t, std::size_t> turn;  // by part
  for (std::size_t r = 0; r < offers.size(); ++r) {
    const std::int64_t part = offers[r].needs;
    if (offers[r].has(part, steps)) continue;
    const std::vector<int> sources = ranks_with(offers, part, steps);
    all.push_back({.from = sources[turn[part]++ % sources.size()], .to = int(r)});
  }
  return all;
}

}  // namespace

HeldState::Tensors HeldState::copies_of(const std::vector<StateTensor>& tensors) {
  Tensors copies;
  for (const StateTensor& t : tensors)
    copies.push_back({t.slice, std::vector<std::byte>(t.bytes.begin(), t.bytes.end())});
  return copies;
}

HeldState::HeldState(Trainer& trainer)
    : part_(model_part_of(trainer.layout())), optimizer_began_(trainer.optimizer_began()) {
  const auto hold = [&] {
    versions_.push_back({.steps = trainer.updates_done(), .tensors = copies_of(trainer.state())});
  };
  hold();
  statistics_ = copies_of(trainer.statistics());
  statistics_before_ = copies_of(trainer.statistics_before_step());
  // Whoever gets this version makes the step again, which counts its samples again.
  for (Tensor& tensor : versions_.front().tensors)
    if (const auto before = std::ranges::find(statistics_before_, tensor.slice, &Tensor::slice);
        before != statistics_before_.end())
      tensor.bytes = before->bytes;
  if (trainer.make_up_update()) hold();
}

const HeldState::Tensor& HeldState::of(const Tensors& tensors, const TensorSlice& slice) {
  const auto found = std::ranges::find(tensors, slice, &Tensor::slice);
  RECKON_CHECK(found != tensors.end());  // of the same part
  return *found;
}

const HeldState::Version* HeldState::with(std::int64_t steps) const {
  const auto found = std::ranges::find(versions_, steps, &Version::steps);
  return found != versions_.end() ? &*found : nullptr;
}

std::optional<std::int64_t> share_held_state(Communicator& peers, Trainer& trainer,
                                             const HeldState* mine) {
  RankOffer own{.needs = model_part_of(trainer.layout())};
  if (mine != nullptr) {
    own.holds = mine->part_;
    own.optimizer_began = mine->optimizer_began_;
    for (std::size_t k = 0; k < mine->versions_.size(); ++k)
      own.steps.at(k) = mine->versions_[k].steps;
  }
  const std::vector<RankOffer> offers = offers_of_all(peers, own);
  const auto steps = newest_whole(offers);
  if (!steps) return std::nullopt;

  const std::vector<RestoreTensor> targets = trainer.restore(*steps);
  trainer.set_optimizer_began(
      std::ranges::max(offers, {}, &RankOffer::optimizer_began).optimizer_began);
  const HeldState::Version* held = mine != nullptr ? mine->with(*steps) : nullptr;
  if (own.has(own.needs, *steps))
    for (const RestoreTensor& target : targets)
      std::ranges::copy(HeldState::of(held->tensors, target.slice).bytes, target.bytes.begin());
  for (const Transfer& way : transfers_of(offers, *steps)) {
    if (way.from == peers.rank())
      for (const HeldState::Tensor* tensor : in_order(held->tensors))
        peers.send(tensor->bytes, way.to);
    if (way.to == peers.rank())
      for (const RestoreTensor* target : in_order(targets)) peers.receive(target->bytes, way.from);
  }
  if (mine == nullptr || mine->part_ != own.needs) return steps;
  const std::int64_t first = mine->versions_.front().steps;
  const bool before = first == *steps;
  // Behind an update of others all of this rank's passes of the step were over.
  if (!before && first + 1 != *steps) return steps;
  const auto& statistics = before ? mine->statistics_before_ : mine->statistics_;
  for (const StateTensor& place : trainer.statistics())
    trainer.set_statistic(place.slice.name, HeldState::of(statistics, place.slice).bytes);
  return steps;
}

}  // namespace reckon
