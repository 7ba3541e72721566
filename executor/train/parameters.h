#pragma once
#include <cstddef>
#include <functional>
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
  /// Of the tensor and expert ranks that have the same numbers this one stands for all: their
  /// gradients count once in the norm of all.
  bool counts = true;
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
  /// Of an embedding table on parameter servers: what lies here are rows of a step
  /// (pulled_layout()), and no slice of the tensor stays.
  bool pulled = false;
  bool copied = false;  // a weight of another stage of a pipeline, to which a layer here is tied

  const Shape& global_shape() const { return global.empty() ? shape : global; }
};

/// Slots in the order of the layers; a tied weight has one slot, at the layer that owns it.
struct ParameterLayout {
  std::vector<ParameterSlot> slots;
  std::size_t count = 0;  // of all slots; of a whole model == ModelGraph::parameters()
};
ParameterLayout parameter_layout(const ModelGraph& model);
/// What the rank of `rank` has of them; what a rank at `place` has, where make_rank_model() finds
/// no error.
ParameterLayout parameter_layout(const ModelGraph& model, const RankModel& rank);
ParameterLayout parameter_layout(const ModelGraph& model, const ModelPlace& place);

/// What a rank saves and restores of a slot, in the order of its elements in the flat buffer: under
/// `name` (of the parameter, or of an optimizer's state of its shape), which part of which tensor,
/// and where it lies. Together all ranks' are the whole tensor.
struct SlotSlice {
  TensorSlice tensor;
  std::size_t first = 0, count = 0;  // in the flat buffer
};
std::vector<SlotSlice> slices_of(const ParameterSlot& slot, const std::string& name);

/// The slot in another buffer.
ParameterSlot moved_to(ParameterSlot slot, std::size_t first);

/// Of `whole` those of the layers for which `has` says so, and behind them copies, which are not
/// trained, of weights of other layers that some of them are tied to.
ParameterLayout layout_of_layers(const ModelGraph& model, const ParameterLayout& whole,
                                 const std::function<bool(std::size_t layer)>& has);

/// What checkpoints call the part of an optimizer's state that belongs to a parameter, as PyTorch's
/// optimizers do: buffer `k` of FlatOptimizer::state(), which has `buffers`
/// (kernels/optimizer/optimizer.h).
std::string optimizer_tensor(const std::string& parameter, std::size_t k, std::size_t buffers);

}  // namespace reckon
