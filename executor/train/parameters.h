#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "executor/train/checkpoint/tensor_slice.h"
#include "executor/train/parallel/rank_model.h"
#include "sim/model/graph.h"

// Where each weight of a graph lies in the flat buffers of a rank.
namespace reckon {

/// A part of a tensor that lies in one piece of a rank's flat buffer.
struct SlotPart {
  Box box;                // of the whole tensor
  std::size_t first = 0;  // in the flat buffer
  bool counts = true;     // of the tensor ranks that have the same this one stands for all
};

/// One weight tensor of a layer: "layer1.0.conv1.weight", shape as in sim/model/graph.h.
struct ParameterSlot {
  LayerId layer{};  // of the network
  std::string name;
  Shape shape;                       // of what this rank has of it
  std::size_t first = 0, count = 0;  // in the flat buffer
  bool trained = true;
  // Where several ranks hold a model; by default this one has all of the tensor.
  Shape global = {};                 // of the whole tensor; empty: `shape`
  std::vector<SlotPart> parts = {};  // that this rank has; empty: all
  /// Tensor ranks have summands of its gradient: GraphRuntime::backward() adds them up.
  bool sums_gradient = false;
  bool of_experts = false;  // expert ranks have others: replicas are those of `expert_state`

  const Shape& global_shape() const { return global.empty() ? shape : global; }
};

/// Slots in the order of the layers; a tied weight has one slot, at the layer that owns it.
struct ParameterLayout {
  std::vector<ParameterSlot> slots;
  std::size_t count = 0;  // of all slots; of a whole model == ModelGraph::parameters()
};
ParameterLayout parameter_layout(const ModelGraph& model);
/// What the rank of `rank` has of them.
ParameterLayout parameter_layout(const ModelGraph& model, const RankModel& rank);

/// What a rank saves and restores of a slot, in the order of its elements in the flat buffer: under
/// `name` (of the parameter, or of an optimizer's state of its shape), which part of which tensor,
/// and where it lies. Together all ranks' are the whole tensor.
struct SlotSlice {
  TensorSlice tensor;
  std::size_t first = 0, count = 0;  // in the flat buffer
};
std::vector<SlotSlice> slices_of(const ParameterSlot& slot, const std::string& name);

/// Sums of squares of the gradients that this rank stands for. Added up over the tensor ranks (and
/// the stages of a pipeline) those of `dense`, over the expert ranks too those of `experts`, each
/// element of the model's gradient counts once, whatever the layout.
struct GradientSquares {
  double dense = 0, experts = 0;
};
GradientSquares counted_squares(const ParameterLayout& layout, std::span<const float> gradients);

/// What checkpoints call the part of an optimizer's state that belongs to a parameter, as PyTorch's
/// optimizers do: buffer `k` of FlatOptimizer::state(), which has `buffers` (kernels/optimizer.h).
std::string optimizer_tensor(const std::string& parameter, std::size_t k, std::size_t buffers);

}  // namespace reckon
