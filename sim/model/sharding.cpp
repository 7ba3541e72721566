#include "sim/model/sharding.h"

#include <algorithm>
#include <optional>
#include <set>

#include "sim/model/shapes.h"

namespace reckon {
namespace {

/// Width in and out of a product with a weight matrix that can be cut.
struct Widths {
  std::int64_t in = 0, out = 0;
};
std::optional<Widths> matrix_of(const LayerOp& op) {
  if (const auto* l = std::get_if<Linear>(&op)) return Widths{l->in, l->out};
  if (const auto* e = std::get_if<ExpertLinear>(&op)) return Widths{e->in, e->out};
  return std::nullopt;
}

/// Works on each feature (or each head's features) by itself.
bool element_wise(const LayerOp& op) {
  if (const auto* norm = std::get_if<RmsNorm>(&op)) return norm->heads > 1;
  return std::holds_alternative<Activation>(op) || std::holds_alternative<Dropout>(op) ||
         std::holds_alternative<RotaryEmbedding>(op) || std::holds_alternative<ScaleBy>(op) ||
         std::holds_alternative<Multiply>(op) || std::holds_alternative<Add>(op);
}

class Cutter {
 public:
  explicit Cutter(const ModelGraph& model)
      : layers_(model.layers()), users_(layers_.size()), can_split_(layers_.size()) {
    for (const Layer& layer : layers_)
      for (std::size_t k = 0; k < layer.inputs.size(); ++k)
        users_[index(layer.inputs[k])].push_back({index(layer.id), k});
    // Users stand behind what they use, so one walk from the end settles all.
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
      const bool by_rows =
          std::holds_alternative<Embedding>(layer.op) || (matrix_of(layer.op) && split_input);
      if (by_rows) {
        s.cut = TensorCut::row;
      } else if (matrix_of(layer.op) && can_split_[i]) {
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
  struct User {
    std::size_t layer;
    std::size_t input;  // which of its inputs
  };

  bool takes_split(const User& user) const {
    const LayerOp& op = layers_[user.layer].op;
    // A product takes split features together. One that could be cut by columns itself and is
    // wider than its input is (LoRA's second matrix beside a split projection).
    if (const auto matrix = matrix_of(op))
      return user.input == 0 && (!can_split_[user.layer] || matrix->out < matrix->in);
    if (std::holds_alternative<SoftmaxCrossEntropy>(op)) return true;
    if (std::holds_alternative<Attention>(op)) return can_split_[user.layer];
    // What the heads share is whole on every rank.
    if (std::holds_alternative<ConcatToHeads>(op)) return user.input == 0 && can_split_[user.layer];
    return element_wise(op) && can_split_[user.layer] && same_width(user.layer);
  }

  /// A sum or product of tensors of one shape: a gate of one number a token stays whole.
  bool same_width(std::size_t layer) const {
    return std::ranges::all_of(layers_[layer].inputs, [&](LayerId id) {
      return layers_[index(id)].output == layers_[layer].output;
    });
  }

  bool find_can_split(std::size_t i) const {
    return !users_[i].empty() &&
           std::ranges::all_of(users_[i], [&](const User& u) { return takes_split(u); });
  }

  std::span<const Layer> layers_;
  std::vector<std::vector<User>> users_;
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
    if (sharding[i].cut != TensorCut::row || std::holds_alternative<Embedding>(layer.op)) continue;
    const Layer* before = &model.layers()[index(layer.inputs[0])];
    if (!std::holds_alternative<Attention>(before->op)) features.insert(matrix_of(layer.op)->in);
  }
  return {sorted(heads), sorted(kv_heads), sorted(features)};
}

}  // namespace reckon
