#pragma once
#include <cstddef>
#include <functional>
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
  bool copied = false;  // a weight of another stage of a pipeline, to which a layer here is tied
};

/// Slots in the order of the layers; a tied weight has one slot, at the layer that owns it.
struct ParameterLayout {
  std::vector<ParameterSlot> slots;
  std::size_t count = 0;  // of all slots; == ModelGraph::parameters()
};
ParameterLayout parameter_layout(const ModelGraph& model);
/// Those of the layers for which `has` says so, and behind them copies, which are not trained, of
/// weights of other layers that some of them are tied to.
ParameterLayout layout_of_layers(const ModelGraph& model,
                                 const std::function<bool(std::size_t layer)>& has);

/// What checkpoints call the part of an optimizer's state that belongs to a parameter, as PyTorch's
/// optimizers do: buffer `k` of FlatOptimizer::state(), which has `buffers` (kernels/optimizer.h).
std::string optimizer_tensor(const std::string& parameter, std::size_t k, std::size_t buffers);

}  // namespace reckon
