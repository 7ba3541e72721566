#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "sim/model/graph.h"

// Where each weight of a graph lies in the flat buffers of a rank.
namespace reckon {

/// One weight tensor of a layer: "layer1.0.conv1.weight", shape as in sim/model/graph.h.
struct ParameterSlot {
  LayerId layer{};
  std::string name;
  Shape shape;
  std::size_t first = 0, count = 0;  // in the flat buffer
  bool trained = true;
};

/// Slots in the order of the layers; a tied weight has one slot, at the layer that owns it.
struct ParameterLayout {
  std::vector<ParameterSlot> slots;
  std::size_t count = 0;  // of all slots; == ModelGraph::parameters()
};
ParameterLayout parameter_layout(const ModelGraph& model);

/// What checkpoints call the part of an optimizer's state that belongs to a parameter, as PyTorch's
/// optimizers do: buffer `k` of FlatOptimizer::state(), which has `buffers` (kernels/optimizer.h).
std::string optimizer_tensor(const std::string& parameter, std::size_t k, std::size_t buffers);

}  // namespace reckon
