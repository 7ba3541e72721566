#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/sharding.h"

// A network folded into what differs: a transformer of a thousand layers has about fifteen distinct
// ones and three distinct blocks. Made once for a model; a prediction walks the classes.
namespace reckon {

/// Layers that cost the same and are cut the same way.
struct LayerClass {
  LayerCount count;
  LayerSharding sharding;
  double key_value_elements = 0;  // attention: of its keys and values, one sample
  double scores = 0;              // attention: of all heads, one sample
  std::int64_t experts = 0;       // of a layer of experts; 0: it is none
  bool exchanges_tokens = false;  // sends rows to experts and takes them back
  double tied_elements = 0;       // numbers of weights that belong to a layer elsewhere
  bool in_block = false;          // of a group of several, not the last group: the head is no block
  bool ends_block = false;        // what it makes is kept for no backward pass of its block
};

struct Run {
  std::uint32_t what = 0;
  std::uint32_t times = 1;
};

/// A group of layers (Layer::group): a transformer's block.
struct BlockClass {
  std::vector<Run> layers;    // classes and how often each, in no order
  double input_elements = 0;  // of its first input, one sample: what full recomputation keeps
  Flops flops{};              // forward and backward
  bool attention = false;
};

/// One part of a network cut for a pipeline: block classes and how many of each, in order.
using Part = std::vector<Run>;
struct Partition {
  std::vector<Part> kinds;                // distinct parts
  std::vector<std::uint32_t> parts;       // kind of each, in the order of the network
  std::vector<std::size_t> first_layers;  // of each part, by the graph's layers
};

/// The first layer of each group (Layer::group) of the graph: layers without one are groups of
/// their own.
std::vector<std::size_t> first_of_groups(const ModelGraph& model);

/// Scores of an attention layer for one sample, of all heads; 0: the layer is none.
double attention_scores(const ModelGraph& model, std::size_t layer);

class FoldedModel {
 public:
  explicit FoldedModel(const ModelGraph& model);

  std::span<const LayerClass> layers() const { return layers_; }
  std::span<const BlockClass> blocks() const { return blocks_; }
  std::span<const std::uint32_t> class_of_layer() const { return class_of_layer_; }

  /// From now on partition(parts.size()) is of so many units each. False, and nothing changes: they
  /// are not all units.
  bool cut_as(std::span<const int> parts);

  /// The network in so many consecutive parts. Transformers whose blocks can be shared out evenly
  /// are (embeddings with the first part, the head with the last), as Megatron-LM does; all others
  /// so that the part with the most FLOPs has as few as possible. Made once for each number; may be
  /// called from several threads. 1 <= parts <= number of units.
  const Partition& partition(int parts) const;
  int units() const { return static_cast<int>(unit_begin_.size()); }

 private:
  Partition make_partition(int parts) const;
  Partition partition_at(std::span<const std::size_t> first_units) const;
  std::vector<std::size_t> even_cuts(int parts) const;
  std::vector<std::size_t> balanced_cuts(int parts) const;

  std::vector<LayerClass> layers_;
  std::vector<BlockClass> blocks_;
  std::vector<std::uint32_t> order_;           // block class of each group, in network order
  std::vector<std::uint32_t> class_of_layer_;  // by layer of the graph
  std::vector<std::size_t> group_begin_;       // first layer of each group
  std::vector<std::size_t> unit_begin_;        // first group of each unit that a pipeline may move
  bool alike_ = false;                         // units are a transformer's blocks
  mutable std::mutex mutex_;
  mutable std::map<int, Partition> partitions_;
};

}  // namespace reckon
