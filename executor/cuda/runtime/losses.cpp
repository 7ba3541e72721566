#include "executor/cuda/runtime/losses.h"

#include "executor/cuda/layers/token_blocks.h"
#include "executor/train/device/layers.h"
#include "sim/base/check.h"

namespace reckon::cuda {

DeviceLosses::DeviceLosses(const ModelGraph& model, const RankModel& rank, LayerSpan part,
                           std::int64_t batch)
    : batch_(batch), of_layer_(rank.layers.size(), -1), combines_(rank.layers.size()) {
  const std::vector<double> weights = loss_weights(model);
  for (std::size_t i = 0; i < rank.layers.size(); ++i) {
    const RankLayer& layer = rank.layers[i];
    const double weight = layer.is_exchange() ? 0 : weights[index(layer.origin)];
    if (weight == 0) continue;
    const bool is_loss = is_device_loss(layer.layer.op);
    if (part.has(i)) combines_[i] = !is_loss;
    if (!is_loss) continue;
    if (part.has(i)) {
      of_layer_[i] = count_of(losses_.size());
      losses_.push_back({.weight = weight,
                         .data = targets_,
                         .first = layer.part.split_classes ? layer.part.rows.first : 0,
                         .tokens = layer.part.tokens,
                         .values = DeviceBuffer<float>(batch),
                         .slopes = DeviceBuffer<float>(batch),
                         .targets = {}});
    }
    ++targets_;
  }
}

DeviceLoss* DeviceLosses::at(std::size_t layer) {
  const std::ptrdiff_t loss = of_layer_[layer];
  return loss < 0 ? nullptr : &losses_[static_cast<std::size_t>(loss)];
}

void DeviceLosses::set_targets(std::span<const std::span<const float>> targets,
                               cudaStream_t stream) {
  RECKON_CHECK(targets.size() == targets_);
  for (DeviceLoss& loss : losses_) {
    std::span<const float> numbers = targets[loss.data];
    std::vector<float> own;
    if (!loss.tokens.all()) numbers = own = own_tokens(numbers, batch_, loss.tokens);
    if (loss.targets.size() != count_of(numbers.size()))
      loss.targets = DeviceBuffer<float>(count_of(numbers.size()));
    if (loss.first > 0) {
      if (loss.tokens.all()) own.assign(numbers.begin(), numbers.end());
      for (float& target : own) target -= static_cast<float>(loss.first);
      numbers = own;
    }
    queue_to_device(loss.targets.data(), std::as_bytes(numbers), stream, "copying the batch");
  }
}

void DeviceLosses::set_slopes(double scale, cudaStream_t stream) {
  slopes_.clear();
  for (DeviceLoss& loss : losses_) {
    slopes_.emplace_back(static_cast<std::size_t>(batch_),
                         static_cast<float>(scale * loss.weight / static_cast<double>(batch_)));
    queue_to_device(loss.slopes.data(), std::as_bytes(std::span(slopes_.back())), stream,
                    "copying the batch");
  }
}

double DeviceLosses::value(cudaStream_t stream) {
  const auto batch = static_cast<std::size_t>(batch_);
  std::vector<float> losses(losses_.size() * batch);
  for (std::size_t k = 0; k < losses_.size(); ++k)
    queue_to_host(std::as_writable_bytes(std::span(losses).subspan(k * batch, batch)),
                  losses_[k].values.data(), stream, "reading the loss");
  check(cudaStreamSynchronize(stream), "forward pass");
  double sum = 0;
  for (std::size_t i = 0; i < losses.size(); ++i)
    sum += losses_[i / batch].weight * double{losses[i]};
  return sum / static_cast<double>(batch_);
}

}  // namespace reckon::cuda
