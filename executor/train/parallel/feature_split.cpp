#include "executor/train/parallel/feature_split.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/model/layer_rules.h"

namespace reckon {
namespace {

FeatureSection heads_of(std::int64_t heads, std::int64_t width) {
  return {.width = heads * width, .unit = width, .heads = true};
}

class SplitFinder {
 public:
  SplitFinder(const ModelGraph& model, std::span<const LayerSharding> sharding, int ranks,
              Diagnostics& problems)
      : layers_(model.layers()),
        sharding_(sharding),
        ranks_(ranks),
        problems_(problems),
        splits_(layers_.size()) {}

  std::vector<FeatureSplit> find() {
    // Users stand behind what they use: one walk from the end hands their demands on.
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      if (!splits_output(layer, sharding_[i])) continue;
      if (const auto* a = std::get_if<Attention>(&layer.op)) {
        demand(i, {heads_of(a->heads, a->head_width)});
      } else if (const auto* n = std::get_if<RmsNorm>(&layer.op)) {
        demand(i, {heads_of(n->heads, n->width)});
      }
      if (splits_[i].empty()) splits_[i] = {{.width = layer.output.back()}};
      check(i);
      pass_on(i);
    }
    std::ranges::reverse(found_);  // in the order of the layers
    problems_.insert(problems_.end(), found_.begin(), found_.end());
    return std::move(splits_);
  }

 private:
  void demand(std::size_t i, FeatureSplit split) {
    if (splits_[i].empty())
      splits_[i] = std::move(split);
    else if (splits_[i] != split)
      problem(i, "is read by layers that divide its features differently");
  }
  void demand_of_input(std::size_t i, std::size_t k, FeatureSplit split) {
    demand(index(layers_[i].inputs[k]), std::move(split));
  }

  void pass_on(std::size_t i) {
    const Layer& layer = layers_[i];
    if (const auto* a = std::get_if<Attention>(&layer.op)) {
      const FeatureSection q = heads_of(a->heads, a->head_width),
                           kv = heads_of(a->kv_heads, a->head_width);
      if (layer.inputs.size() == 1) return demand_of_input(i, 0, {q, kv, kv});
      demand_of_input(i, 0, {q});
      for (std::size_t k = 1; k < layer.inputs.size(); ++k) demand_of_input(i, k, {kv});
    } else if (split_rule(layer.op) == SplitRule::features) {
      for (std::size_t k = 0; k < layer.inputs.size(); ++k)
        if (layers_[index(layer.inputs[k])].output == layer.output && !plain(splits_[i]))
          demand_of_input(i, k, splits_[i]);
    }
  }
  static bool plain(const FeatureSplit& split) { return split.size() == 1 && !split[0].heads; }

  void check(std::size_t i) {
    for (const FeatureSection& s : splits_[i]) {
      const std::int64_t units = s.width / s.unit;
      if (s.heads && units % ranks_ != 0 && ranks_ % units != 0)
        problem(i, fmt::format("has {} heads, which {} tensor ranks cannot share", units, ranks_));
      if (!s.heads && units < ranks_)
        problem(i, fmt::format("has {} features for {} tensor ranks", units, ranks_));
    }
    if (const auto* r = std::get_if<RotaryEmbedding>(&layers_[i].op))
      for (const FeatureSection& s : splits_[i])
        if (s.unit % r->head_width != 0) problem(i, "rotates heads that tensor ranks would divide");
    if (const auto* a = std::get_if<Attention>(&layers_[i].op); a && a->heads % ranks_ != 0)
      problem(i,
              fmt::format("has {} heads, which {} tensor ranks do not divide", a->heads, ranks_));
  }
  void problem(std::size_t i, const std::string& what) {
    found_.push_back({.at = {},
                      .what = fmt::format("layer '{}' {}", layers_[i].name, what),
                      .hint = "another degree of tensor parallelism, or tensor: 1"});
  }

  std::span<const Layer> layers_;
  std::span<const LayerSharding> sharding_;
  int ranks_;
  Diagnostics& problems_;
  Diagnostics found_;
  std::vector<FeatureSplit> splits_;
};

}  // namespace

bool splits_output(const Layer& layer, const LayerSharding& s) {
  return s.cut == TensorCut::column ||
         (s.cut == TensorCut::parts && split_rule(layer.op) != SplitRule::sums_up);
}

SectionPart part_of(const FeatureSection& section, GroupPlace tensor) {
  const std::int64_t units = section.width / section.unit;
  if (section.heads && units < tensor.ranks) {
    const auto sharers = static_cast<int>(tensor.ranks / units);
    return {.first = tensor.rank / sharers * section.unit,
            .count = section.unit,
            .sharers = sharers,
            .counts = tensor.rank % sharers == 0};
  }
  const std::int64_t each = units / tensor.ranks, more = units % tensor.ranks;
  const std::int64_t before = each * tensor.rank + std::min<std::int64_t>(tensor.rank, more);
  return {.first = before * section.unit,
          .count = (each + (tensor.rank < more ? 1 : 0)) * section.unit};
}

std::int64_t features_of_rank(const FeatureSplit& split, GroupPlace tensor) {
  std::int64_t features = 0;
  for (const FeatureSection& section : split) features += part_of(section, tensor).count;
  return features;
}

std::vector<FeatureSplit> feature_splits(const ModelGraph& model,
                                         std::span<const LayerSharding> sharding, int ranks,
                                         Diagnostics& problems) {
  return SplitFinder(model, sharding, ranks, problems).find();
}

}  // namespace reckon
