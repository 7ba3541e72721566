#include "executor/cuda/memory/parameters.h"

#include <algorithm>
#include <utility>

#include "kernels/elementwise.h"
#include "kernels/half.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

DeviceBuffer<std::byte> floats_for(std::size_t count) {
  return DeviceBuffer<std::byte>(count_of(count * sizeof(float)));
}

}  // namespace

ParameterLayout device_layout(const ParameterLayout& layout) {
  ParameterLayout padded;
  for (const ParameterSlot& slot : layout.slots) {
    padded.slots.push_back(moved_to(slot, padded.count));
    std::size_t& count = padded.slots.back().count;
    if (slot.shape.size() == 2)
      count = static_cast<std::size_t>(whole_rows(slot.shape[0]) * slot.shape[1]);
    constexpr std::size_t line = kLineElements;
    count = (count + line - 1) / line * line;
    padded.count += count;
  }
  return padded;
}

DeviceBuffer<std::byte> MemoryPool::take(std::size_t bytes) {
  Free found;
  {
    const std::lock_guard lock(mutex_);
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (static_cast<std::size_t>(it->memory.size()) >= bytes &&
          (best == free_.end() || it->memory.size() < best->memory.size()))
        best = it;
    if (best == free_.end()) return DeviceBuffer<std::byte>(count_of(bytes));
    found = std::move(*best);
    free_.erase(best);
  }
  if (found.used) check(cudaEventSynchronize(found.used->get()), "memory that was in use");
  return std::move(found.memory);
}

void MemoryPool::give(DeviceBuffer<std::byte> memory, cudaStream_t stream) {
  auto used = std::make_unique<Event>();
  check(cudaEventRecord(used->get(), stream), "memory that was in use");
  const std::lock_guard lock(mutex_);
  free_.push_back({std::move(memory), std::move(used)});
}
void MemoryPool::give(DeviceBuffer<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  free_.push_back({std::move(memory), nullptr});
}

DeviceParameters::DeviceParameters(const ParameterLayout& layout,
                                   const std::vector<ZeroBlock>& blocks, int zero_stage,
                                   DevicePrecision precision, cudaStream_t stream, bool offloaded)
    : layout_(layout),
      padded_(device_layout(layout)),
      zero_stage_(zero_stage),
      precision_(precision),
      offloaded_(offloaded),
      stream_(stream),
      host_(layout.count) {
  const bool cut = zero_stage >= 2;
  std::size_t block = 0;
  for (std::size_t s = 0; s < layout_.slots.size(); ++s) {
    const ParameterSlot &here = layout_.slots[s], &there = padded_.slots[s];
    bool opens = pieces_.empty();
    if (cut && !opens) {
      if (here.copied) {
        opens = !layout_.slots[s - 1].copied;
      } else if (here.first >= blocks[block].whole.first + blocks[block].whole.count) {
        ++block;
        opens = true;
      }
    }
    if (opens) {
      Piece piece{.range = {there.first, 0}};
      piece.values_stay = zero_stage < 3 || here.copied;
      piece.gradients_stay = !cut || here.copied;
      pieces_.push_back(std::move(piece));
    }
    pieces_.back().range.count += there.count;
    piece_of_.push_back(pieces_.size() - 1);
  }
  for (Piece& piece : pieces_) {
    if (piece.values_stay)
      weights_in(piece) = DeviceBuffer<std::byte>(count_of(
          piece.range.count * (rounded_alone() ? weight_bytes(precision_) : sizeof(float))));
    if (piece.gradients_stay) piece.gradients = floats_for(piece.range.count);
  }
}

ParameterView DeviceParameters::exchanged() {
  if (zero_stage_ >= 2 || offloaded_) return {host(), {}};
  if (pieces_.empty()) return {};
  RECKON_CHECK(pieces_.size() == 1 && pieces_[0].values_stay && pieces_[0].gradients_stay);
  return {values(0), gradients(0)};
}

std::span<float> DeviceParameters::take_values(std::size_t piece) {
  Piece& p = pieces_[piece];
  if (p.values.data() == nullptr) p.values = pool_.take(p.range.count * sizeof(float));
  return values(piece);
}

void DeviceParameters::drop_values(std::size_t piece) {
  Piece& p = pieces_[piece];
  if (p.values_stay) return;
  for (DeviceBuffer<std::byte>* memory : {&p.values, &p.rounded})
    if (memory->data() != nullptr) pool_.give(std::exchange(*memory, {}), stream_);
  p.is_rounded = false;
}

std::span<std::byte> DeviceParameters::weights(std::size_t piece) {
  RECKON_CHECK(offloaded_);
  return {weights_in(pieces_[piece]).data(), pieces_[piece].range.count * weight_bytes(precision_)};
}

std::span<std::byte> DeviceParameters::take_weights(std::size_t piece) {
  DeviceBuffer<std::byte>& memory = weights_in(pieces_[piece]);
  if (memory.data() == nullptr)
    memory = pool_.take(pieces_[piece].range.count * weight_bytes(precision_));
  return weights(piece);
}

std::byte* DeviceParameters::weights_of(std::size_t slot) {
  return weights(piece_of_[slot]).data() + offset(slot) * weight_bytes(precision_);
}

std::span<float> DeviceParameters::gradients(std::size_t piece) {
  Piece& p = pieces_[piece];
  if (p.gradients.data() == nullptr) {
    p.gradients = pool_.take(p.range.count * sizeof(float));
    check(cudaMemsetAsync(p.gradients.data(), 0, p.range.count * sizeof(float), stream_),
          "clearing gradients");
  }
  return floats(p.gradients, piece);
}

void DeviceParameters::drop_gradients(std::size_t piece) {
  Piece& p = pieces_[piece];
  if (!p.gradients_stay && p.gradients.data() != nullptr)
    pool_.give(std::exchange(p.gradients, {}));
}

const void* DeviceParameters::weight(std::size_t slot) {
  Piece& p = pieces_[piece_of_[slot]];
  if (precision_ == DevicePrecision::fp32) return master(slot);
  if (rounded_alone()) return weights_of(slot);
  const auto count = static_cast<std::int64_t>(p.range.count);
  const auto rounded = [&]<class E>(E) {
    E* to = reinterpret_cast<E*>(p.rounded.data());
    if (!p.is_rounded)
      check(gpu::round_to(reinterpret_cast<const float*>(p.values.data()), to, count, stream_),
            "rounding weights");
    return static_cast<const void*>(to + offset(slot));
  };
  if (p.rounded.data() == nullptr) p.rounded = pool_.take(p.range.count * sizeof(Bf16));
  const void* at = precision_ == DevicePrecision::bf16 ? rounded(Bf16{}) : rounded(Half{});
  p.is_rounded = true;
  return at;
}

void DeviceParameters::changed() {
  for (Piece& piece : pieces_) piece.is_rounded = false;
}

void DeviceParameters::clear_gradients() {
  for (Piece& piece : pieces_)
    if (piece.gradients_stay)
      check(cudaMemsetAsync(piece.gradients.data(), 0, piece.range.count * sizeof(float), stream_),
            "clearing gradients");
}

void DeviceParameters::fetch(std::size_t slot, std::span<float> value) {
  check(cudaStreamSynchronize(stream_), "step");
  if (!rounded_alone()) return copy_to_host(value.data(), master(slot), value.size_bytes());
  std::vector<std::byte> here(value.size() * weight_bytes(precision_));
  copy_to_host(here.data(), weights_of(slot), here.size());
  widen_weights(precision_, here, value);
}

void DeviceParameters::set(std::size_t slot, std::span<const float> value) {
  if (!rounded_alone()) return copy_to_device(master(slot), value.data(), value.size_bytes());
  std::vector<std::byte> here(value.size() * weight_bytes(precision_));
  round_weights(precision_, value, here);
  copy_to_device(weights_of(slot), here.data(), here.size());
}

Bytes DeviceParameters::held() const {
  std::int64_t bytes = 0;
  for (const Piece& p : pieces_) bytes += p.values.size() + p.gradients.size() + p.rounded.size();
  return Bytes{static_cast<double>(bytes)};
}

void DeviceParameters::to_host() {
  check(cudaStreamSynchronize(stream_), "step");
  if (rounded_alone() || (offloaded_ && zero_stage_ == 0)) return;
  for (std::size_t s = 0; s < layout_.slots.size(); ++s)
    if (pieces_[piece_of_[s]].values_stay)
      fetch(s, host().subspan(layout_.slots[s].first, layout_.slots[s].count));
}

void DeviceParameters::to_device() {
  for (std::size_t s = 0; s < layout_.slots.size(); ++s)
    if (pieces_[piece_of_[s]].values_stay)
      set(s, host().subspan(layout_.slots[s].first, layout_.slots[s].count));
  changed();
}

}  // namespace reckon::cuda
