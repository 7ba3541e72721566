#pragma once
#include "executor/cuda/layers/runner.h"
#include "executor/cuda/memory/parameters.h"

namespace reckon::cuda {

/// The sums over the tensor ranks of a model's gradients.
class TensorSums {
 public:
  /// Of the layer's weights of which each rank has a summand (ParameterSlot::sums_gradient), in
  /// place, behind what pass.stream has been asked for. Collective over pass.tensor.
  void sum(LayerId layer, DeviceParameters& parameters, const DevicePass& pass);

 private:
  DeviceBuffer<float> whole_;  // a gradient, of which ranks have parts
};

}  // namespace reckon::cuda
