#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "executor/cuda/memory/buffers.h"
#include "executor/train/recipe/schedule.h"

namespace reckon::cuda {

/// One of the losses that a model's is the weighted sum of.
struct DeviceLoss {
  double weight = 1;       // in the model's
  std::size_t data = 0;    // which of the batch's targets
  std::int64_t first = 0;  // of its classes that is here; targets on the device count from it
  TokenPart tokens;        // that are here
  DeviceBuffer<float> values, slopes, targets;  // of each sample
};

/// The losses that a part of a model has, on the device: their targets, values and slopes.
class DeviceLosses {
 public:
  /// Those of `part`; loss_weights(model) says which layers are losses. Throws DeviceError.
  DeviceLosses(const ModelGraph& model, const RankModel& rank, LayerSpan part, std::int64_t batch);

  /// By layer of the rank's model; null: a layer of the part is no loss.
  DeviceLoss* at(std::size_t layer);
  /// Is it a sum of losses, perhaps scaled? value() does what it does.
  bool combines(std::size_t layer) const { return combines_[layer]; }

  /// One a loss of the model, in the order of its layers, as BatchView has them.
  void set_targets(std::span<const std::span<const float>> targets, cudaStream_t stream);
  /// What a backward pass begins with: `scale` times the slope of the mean over samples.
  void set_slopes(double scale, cudaStream_t stream);
  /// The part's summand of the model's loss, a mean over samples, for which it waits.
  double value(cudaStream_t stream);

 private:
  const std::int64_t batch_;
  std::vector<DeviceLoss> losses_;        // in the order of the layers
  std::vector<std::ptrdiff_t> of_layer_;  // which of losses_; -1: none
  std::vector<bool> combines_;
  std::size_t targets_ = 0;                 // of a batch
  std::vector<std::vector<float>> slopes_;  // on the host, until they are there
};

}  // namespace reckon::cuda
