#include "executor/cuda/exchange/gradient_sums.h"

#include <algorithm>

#include "sim/base/check.h"

namespace reckon::cuda {

bool OpenSums::add(ParameterRange range) {
  open_.push_back(range);
  const Bytes bytes{static_cast<double>(range.count * sizeof(float))};
  bytes_ += bytes;
  return rule_.add(bytes);
}

std::vector<ParameterRange> OpenSums::send(std::span<float> gradients, cudaStream_t stream) {
  if (ranks() > 1 && !open_.empty()) {
    std::vector<std::span<float>> sums;
    for (const ParameterRange& range : open_)
      sums.push_back(gradients.subspan(range.first, range.count));
    reducer_->queue_sums(sums, stream);
  }
  return std::exchange(open_, {});
}

void OpenSums::join(cudaStream_t stream) {
  if (ranks() > 1) reducer_->join(stream);
}

void OpenSums::check_peers() const {
  if (ranks() > 1) reducer_->check_peers("sum of gradients");
}

Bytes OpenSums::take_sent() {
  RECKON_CHECK(open_.empty());
  rule_ = {};
  const double n = ranks();
  return std::exchange(bytes_, {}) * (2.0 * (n - 1) / n);
}

GradientSums::GradientSums(DeviceReducer* all, DeviceReducer* expert_replicas,
                           const ParameterLayout& padded)
    : all_(all), experts_(expert_replicas) {
  for (const ParameterSlot& slot : padded.slots)
    if (slot.of_experts) of_experts_.push_back({slot.first, slot.count});
}

OpenSums& GradientSums::of(ParameterRange range) {
  const bool experts = std::ranges::any_of(of_experts_, [&](const ParameterRange& slot) {
    return slot.first >= range.first && slot.first < range.first + range.count;
  });
  return experts ? experts_ : all_;
}

}  // namespace reckon::cuda
