#include "sim/model/sharding.h"

#include <algorithm>
#include <optional>
#include <set>

#include "sim/model/layer_graph.h"
#include "sim/model/layer_rules.h"

namespace reckon {
namespace {

/// Width in and out of a product with a weight matrix that can be cut.
struct Widths {
  std::int64_t in = 0, out = 0;
};
std::optional<Widths> matrix_of(const LayerOp& op) {
  if (split_rule(op) != SplitRule::matrix) return std::nullopt;
  const Shape weight = weights_of(op).weight;  // (..., out, in)
  return Widths{weight[weight.size() - 1], weight[weight.size() - 2]};
}

class Cutter {
 public:
  explicit Cutter(const ModelGraph& model)
      : layers_(model.layers()), graph_(model.graph()), can_split_(layers_.size()) {
    // Readers stand behind what they read, so one walk from the end settles all.
    for (std::size_t i = layers_.size(); i-- > 0;) can_split_[i] = find_can_split(i);
  }

  std::vector<LayerSharding> cut() const {
    std::vector<LayerSharding> result(layers_.size());
    std::vector<bool> split(layers_.size());
    std::set<std::size_t> gathered;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      LayerSharding& s = result[i];
      const bool split_input = !layer.inputs.empty() && split[index(layer.inputs[0])];
      const SplitRule rule = split_rule(layer.op);
      const bool matrix = rule == SplitRule::matrix;
      if (rule == SplitRule::rows || (matrix && split_input)) {
        s.cut = TensorCut::row;
      } else if (matrix && can_split_[i]) {
        s.cut = TensorCut::column;
        s.gathers = gathered.insert(index(layer.inputs[0])).second;
      } else if (split_input) {
        s.cut = TensorCut::parts;
      }
      split[i] = s.cut == TensorCut::column || s.cut == TensorCut::parts;
    }
    return result;
  }

 private:
  /// Does the reader take its input split?
  bool takes_split(const LayerGraph::Edge& edge) const {
    const std::size_t reader = source(edge, graph_.edges());
    const bool first_input = graph_.edges()[edge].place == 0;
    const LayerOp& op = layers_[reader].op;
    const bool passes_on = can_split_[reader];
    switch (split_rule(op)) {
      case SplitRule::matrix: {
        // A product takes split features together. One that could be cut by columns itself and is
        // wider than its input is (LoRA's second matrix beside a split projection).
        const Widths matrix = *matrix_of(op);
        return first_input && (!passes_on || matrix.out < matrix.in);
      }
      case SplitRule::sums_up:
        return true;
      case SplitRule::heads:
        return passes_on;
      case SplitRule::first_input:
        return first_input && passes_on;
      case SplitRule::features:
        return passes_on && same_width(reader);
      case SplitRule::rows:
      case SplitRule::whole:
        return false;
    }
    return false;
  }

  /// A sum or product of tensors of one shape: a gate of one number a token stays whole.
  bool same_width(std::size_t layer) const {
    return std::ranges::all_of(layers_[layer].inputs, [&](LayerId id) {
      return layers_[index(id)].output == layers_[layer].output;
    });
  }

  bool find_can_split(std::size_t i) const {
    const auto edges = graph_.readers(i);
    return !edges.empty() && std::all_of(edges.begin(), edges.end(),
                                         [&](const auto& edge) { return takes_split(edge); });
  }

  std::span<const Layer> layers_;
  const LayerGraph& graph_;
  std::vector<bool> can_split_;
};

std::vector<std::int64_t> sorted(const std::set<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<LayerSharding> shard_layers(const ModelGraph& model) { return Cutter(model).cut(); }

ShardedWidths sharded_widths(const ModelGraph& model) {
  const auto sharding = shard_layers(model);
  std::set<std::int64_t> heads, kv_heads, features;
  for (std::size_t i = 0; i < sharding.size(); ++i) {
    const Layer& layer = model.layers()[i];
    if (const auto* attention = std::get_if<Attention>(&layer.op)) {
      heads.insert(attention->heads);
      kv_heads.insert(attention->kv_heads);
    }
    // The vocabulary is padded to a multiple of the degree, attention's projections follow the
    // heads: what is left are the feed-forward layers.
    if (sharding[i].cut != TensorCut::row || split_rule(layer.op) == SplitRule::rows) continue;
    const Layer* before = &model.layers()[index(layer.inputs[0])];
    if (!std::holds_alternative<Attention>(before->op)) features.insert(matrix_of(layer.op)->in);
  }
  return {sorted(heads), sorted(kv_heads), sorted(features)};
}

}  // namespace reckon
