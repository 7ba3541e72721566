#pragma once
#include <vector>

#include "sim/model/graph.h"

// How tensor parallelism [Shoeybi et al. 2019, "Megatron-LM", arXiv:1909.08053, Sec. 3] cuts a
// network: read off the graph, so that every transformer, with LoRA or with experts, is cut by one
// rule. A tensor is either whole on every rank (with sequence parallelism: its tokens are shared
// out) or split along its features.
namespace reckon {

enum class TensorCut : std::uint8_t {
  whole,   // every rank has all the weights: norms, sums, dropout, a router, a small head
  column,  // whole in, split out: the weight matrix is cut along its outputs
  row,     // split in, whole out: cut along its inputs, the results are summed; an embedding's rows
  parts,   // no weights cut, but its features are split: attention (by heads), activations, a loss
};

struct LayerSharding {
  TensorCut cut = TensorCut::whole;
  /// The first layer that takes a certain whole tensor apart: its input is gathered (sequence
  /// parallelism), its input's gradient summed, once for all layers that do so (q, k and v).
  bool gathers = false;
};

/// In the order of the layers. A layer is cut by columns where everything that its output reaches
/// can work on split features until a product takes them together again.
std::vector<LayerSharding> shard_layers(const ModelGraph& model);

/// Widths that the tensor-parallel degree has to divide, each once, ascending.
struct ShardedWidths {
  std::vector<std::int64_t> heads, kv_heads;
  std::vector<std::int64_t> features;  // into matrices cut by rows: feed-forward widths
};
ShardedWidths sharded_widths(const ModelGraph& model);

}  // namespace reckon
