#include "sim/step/memory/folded_model.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// What makes two layers alike, as numbers that can be ordered.
using LayerKey = std::array<double, 27>;

LayerKey key_of(const LayerClass& c) {
  const LayerCount& n = c.count;
  return {double(n.parameters),   double(n.trainable_parameters),
          double(n.weights_read), n.forward.v,
          n.backward.v,           n.model.v,
          n.elements_in,          n.elements_out,
          n.saved_elements,       n.saved_fixed.v,
          double(n.work),         double(n.has_backward),
          double(n.frozen),       double(n.four_bit),
          double(n.depthwise),    double(n.small_square),
          double(n.in_fp32),      double(n.steps),
          double(c.sharding.cut), double(c.sharding.gathers),
          c.key_value_elements,   c.scores,
          double(c.experts),      double(c.exchanges_tokens),
          c.tied_elements,        double(c.in_block),
          double(c.ends_block)};
}

LayerClass class_of(const ModelGraph& model, std::size_t i, const LayerSharding& sharding) {
  const Layer& layer = model.layers()[i];
  LayerClass c;
  c.count = model.counts()[i];
  c.sharding = sharding;
  if (const auto* a = std::get_if<Attention>(&layer.op)) {
    const Shape& keys =
        model.layers()[index(layer.inputs.size() >= 3 ? layer.inputs[1] : layer.inputs[0])].output;
    const std::int64_t width = a->kv_heads * (a->head_width + a->values());
    c.key_value_elements = double(width) * double(keys.front());
    c.scores = attention_scores(model, i);
  }
  if (const auto* e = std::get_if<ExpertLinear>(&layer.op)) c.experts = e->experts;
  c.exchanges_tokens = std::holds_alternative<ExpertDispatch>(layer.op) ||
                       std::holds_alternative<ExpertCombine>(layer.op);
  if (layer.tied_to) c.tied_elements = double(c.count.weights_read - c.count.parameters);
  return c;
}

bool begins_group(const ModelGraph& model, std::size_t i) {
  const auto layers = model.layers();
  return i == 0 || layers[i].group.empty() || layers[i].group != layers[i - 1].group;
}

/// From a layer of a group to the group's end: one past its last layer.
std::size_t end_of_group(const ModelGraph& model, std::size_t first) {
  std::size_t end = first + 1;
  while (end < model.layers().size() && !begins_group(model, end)) ++end;
  return end;
}

/// The first of the layers at the end of a group that no backward pass of it needs: the last one's
/// output is the next group's input, and before it those whose output nobody keeps.
std::size_t first_unneeded(const ModelGraph& model, std::size_t first, std::size_t end) {
  std::size_t at = end;
  while (at > first && model.counts()[at - 1].saved_fixed.v == 0 &&
         (at == end || model.counts()[at - 1].saved_elements == 0))
    --at;
  return at;
}

/// Adds a run to a part, or lengthens its last one.
void append(Part& part, std::uint32_t what) {
  if (!part.empty() && part.back().what == what)
    ++part.back().times;
  else
    part.push_back({what, 1});
}

bool same(const Part& a, const Part& b) {
  return std::ranges::equal(
      a, b, [](const Run& x, const Run& y) { return x.what == y.what && x.times == y.times; });
}

}  // namespace

std::vector<std::size_t> first_of_groups(const ModelGraph& model) {
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < model.layers().size(); ++i)
    if (begins_group(model, i)) first.push_back(i);
  return first;
}

double attention_scores(const ModelGraph& model, std::size_t layer) {
  const Layer& l = model.layers()[layer];
  const auto* a = std::get_if<Attention>(&l.op);
  if (a == nullptr) return 0;
  const auto tokens = [&](std::size_t input) {
    return double(model.layers()[index(l.inputs[input])].output.front());
  };
  const double keys = tokens(l.inputs.size() >= 3 ? 1 : 0);
  return tokens(0) * (a->window > 0 ? std::min(double(a->window), keys) : keys) * double(a->heads);
}

FoldedModel::FoldedModel(const ModelGraph& model) : group_begin_(first_of_groups(model)) {
  const auto sharding = shard_layers(model);
  std::map<LayerKey, std::uint32_t> class_ids;
  using BlockKey = std::pair<double, std::map<std::uint32_t, std::uint32_t>>;
  std::map<BlockKey, std::uint32_t> block_ids;
  BlockKey open;
  const auto close = [&] {
    const auto [it, fresh] = block_ids.try_emplace(open, std::uint32_t(blocks_.size()));
    order_.push_back(it->second);
    if (!fresh) return;
    BlockClass block;
    block.input_elements = open.first;
    for (const auto& [layer, times] : open.second) {
      const LayerCount& count = layers_[layer].count;
      block.layers.push_back({layer, times});
      block.flops += double(times) * (count.forward + count.backward);
      block.attention |= count.work == WorkKind::attention;
    }
    blocks_.push_back(std::move(block));
  };
  std::size_t first = 0, end = 0, unneeded = 0;  // of the group at hand
  for (std::size_t i = 0; i < model.layers().size(); ++i) {
    if (begins_group(model, i)) {
      if (i > 0) close();
      first = i;
      end = end_of_group(model, i);
      unneeded = first_unneeded(model, first, end);
      const auto& inputs = model.layers()[i].inputs;
      open = {inputs.empty() ? 0.0 : double(elements(model.layers()[index(inputs[0])].output)), {}};
    }
    LayerClass c = class_of(model, i, sharding[i]);
    c.in_block = end - first > 1 && end < model.layers().size();
    c.ends_block = i >= unneeded;
    const auto [it, fresh] = class_ids.try_emplace(key_of(c), std::uint32_t(layers_.size()));
    if (fresh) layers_.push_back(c);
    class_of_layer_.push_back(it->second);
    ++open.second[it->second];
  }
  close();

  alike_ = std::ranges::any_of(blocks_, &BlockClass::attention);
  for (std::size_t g = 0; g < order_.size(); ++g) {
    const BlockClass& block = blocks_[order_[g]];
    const bool weights = std::ranges::any_of(
        block.layers, [&](const Run& r) { return layers_[r.what].count.weights_read > 0; });
    if (alike_ ? block.attention : weights) unit_begin_.push_back(g);
  }
  if (unit_begin_.empty()) unit_begin_.push_back(0);
  unit_begin_.front() = 0;  // what comes before the first unit moves with it
}

std::vector<std::size_t> FoldedModel::even_cuts(int parts) const {
  std::vector<std::size_t> first;
  const std::size_t each = unit_begin_.size() / std::size_t(parts);
  for (std::size_t k = 0; k < std::size_t(parts); ++k) first.push_back(k * each);
  return first;
}

/// Smallest largest part, by bisection over the size that a part may have; each part is filled as
/// far as that goes while enough units stay for the parts behind it.
std::vector<std::size_t> FoldedModel::balanced_cuts(int parts) const {
  const std::size_t units = unit_begin_.size(), n = std::size_t(parts);
  std::vector<double> work(units);
  for (std::size_t u = 0; u < units; ++u) {
    const std::size_t end = u + 1 < units ? unit_begin_[u + 1] : order_.size();
    for (std::size_t g = unit_begin_[u]; g < end; ++g) work[u] += blocks_[order_[g]].flops.v;
  }
  const auto cut = [&](double limit) {
    std::vector<std::size_t> first{0};
    double sum = 0;
    for (std::size_t u = 0; u < units; ++u) {
      const bool full = sum > 0 && sum + work[u] > limit;
      const bool rest_is_needed = units - u <= n - first.size();
      if (u > first.back() && (full || rest_is_needed)) {
        first.push_back(u);
        sum = 0;
      }
      sum += work[u];
    }
    return first;
  };
  double low = 0, high = 0;
  for (const double w : work) high += w;
  constexpr int kBisections = 50;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    (cut(middle).size() <= n ? high : low) = middle;
  }
  return cut(high);
}

Partition FoldedModel::partition_at(std::span<const std::size_t> first_units) const {
  Partition p;
  for (std::size_t k = 0; k < first_units.size(); ++k) {
    const bool last = k + 1 == first_units.size();
    const std::size_t end = last ? order_.size() : unit_begin_[first_units[k + 1]];
    Part part;
    p.first_layers.push_back(group_begin_[unit_begin_[first_units[k]]]);
    for (std::size_t g = unit_begin_[first_units[k]]; g < end; ++g) append(part, order_[g]);
    const auto known =
        std::ranges::find_if(p.kinds, [&](const Part& other) { return same(part, other); });
    p.parts.push_back(std::uint32_t(known - p.kinds.begin()));
    if (known == p.kinds.end()) p.kinds.push_back(std::move(part));
  }
  return p;
}

Partition FoldedModel::make_partition(int parts) const {
  const bool even = alike_ && units() % parts == 0;
  return partition_at(even ? even_cuts(parts) : balanced_cuts(parts));
}

bool FoldedModel::cut_as(std::span<const int> parts) {
  std::vector<std::size_t> first;
  std::size_t next = 0;
  for (const int part : parts) {
    if (part < 1) return false;
    first.push_back(next);
    next += std::size_t(part);
  }
  if (first.empty() || next != unit_begin_.size()) return false;
  const std::lock_guard lock(mutex_);
  partitions_.insert_or_assign(int(parts.size()), partition_at(first));
  return true;
}

const Partition& FoldedModel::partition(int parts) const {
  RECKON_CHECK(parts >= 1 && parts <= units());
  const std::lock_guard lock(mutex_);
  const auto found = partitions_.find(parts);
  if (found != partitions_.end()) return found->second;
  return partitions_.emplace(parts, make_partition(parts)).first->second;
}

}  // namespace reckon
