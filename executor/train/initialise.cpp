#include "executor/train/initialise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/model/layer_graph.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

constexpr Purpose kWeights{"initial_weights"};

std::uint32_t hash_of(std::string_view text) {  // FNV-1a, as Purpose
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

enum class Law { constant, normal, uniform };
struct Distribution {
  Law law = Law::constant;
  double scale = 0;  // the constant, the deviation, or half the width
};

double root(double x) { return std::sqrt(x); }

class Rules {
 public:
  explicit Rules(const ModelGraph& model) : model_(model), is_branch_(branches_of(model)) {
    for (const Layer& layer : model.layers())
      if (std::holds_alternative<Attention>(layer.op)) ++blocks_;
  }

  Distribution of(const ParameterSlot& slot) const {
    const Layer& layer = model_.layers()[index(slot.layer)];
    const bool bias = slot.name.ends_with(".bias");
    const bool sequence = model_.sample_unit() == SampleUnit::sequence;
    return std::visit(
        overloaded{[&](const Linear& l) { return linear(layer, l.in, bias, sequence); },
                   [&](const ExpertLinear& l) { return linear(layer, l.in, bias, sequence); },
                   [&](const Conv2d& c) -> Distribution {
                     const auto taps = static_cast<double>(c.kernel_h * c.kernel_w);
                     const std::int64_t in = c.in / c.groups, out = c.out / c.groups;  // whole
                     const double fan_in = taps * static_cast<double>(in);
                     if (bias) return {Law::uniform, 1 / root(fan_in)};
                     return {Law::normal, root(2 / (taps * static_cast<double>(out)))};
                   },
                   [&](const BatchNorm&) { return norm(bias); },
                   [&](const LayerNorm&) { return norm(bias); },
                   [&](const RmsNorm&) { return norm(bias); },
                   [&](const EmbeddingBag& e) -> Distribution {  // dlrm_s_pytorch.py
                     return {Law::uniform, 1 / root(static_cast<double>(e.rows))};
                   },
                   [&](const auto&) -> Distribution {
                     return {Law::normal, kDeviation};
                   }},
        layer.op);
  }

 private:
  static constexpr double kDeviation = 0.02;
  static Distribution norm(bool bias) { return {Law::constant, bias ? 0.0 : 1.0}; }

  Distribution linear(const Layer& layer, std::int64_t in, bool bias, bool sequence) const {
    const Distribution torch{Law::uniform, 1 / root(static_cast<double>(in))};
    if (layer.name.ends_with(".lora_A")) return torch;
    if (layer.name.ends_with(".lora_B")) return {Law::constant, 0};
    if (!sequence) return torch;
    if (bias) return {Law::constant, 0};
    const bool branch = is_branch_[index(layer.id)] && blocks_ > 0;
    return {Law::normal, branch ? kDeviation / root(2.0 * blocks_) : kDeviation};
  }

  /// The projections that a residual sum adds to its first input, through dropouts.
  static std::vector<bool> branches_of(const ModelGraph& model) {
    const auto layers = model.layers();
    std::vector<std::size_t> branches;
    for (const Layer& sum : layers) {
      if (!std::holds_alternative<Add>(sum.op)) continue;
      for (std::size_t k = 1; k < sum.inputs.size(); ++k) branches.push_back(index(sum.inputs[k]));
    }
    std::vector<bool> result = model.graph().ancestors(
        branches, [&](std::size_t i) { return std::holds_alternative<Dropout>(layers[i].op); });
    for (std::size_t i = 0; i < layers.size(); ++i)
      result[i] = result[i] && std::holds_alternative<Linear>(layers[i].op);
    return result;
  }

  const ModelGraph& model_;
  std::vector<bool> is_branch_;  // by layer: branches_of()
  int blocks_ = 0;
};

void fill(const Distribution& d, RandomStream& stream, std::span<float> values) {
  for (float& value : values) {
    const double x = d.law == Law::constant ? 1
                     : d.law == Law::normal ? stream.normal()
                                            : 2 * stream.uniform() - 1;
    value = static_cast<float>(d.scale * x);
  }
}

/// Of a row of a tensor, (outer, last dimension), what lies in a box goes to its place.
void take_row(const ParameterSlot& slot, std::span<const std::int64_t> outer,
              std::span<const float> row, std::span<float> values) {
  for (const SlotPart& part : slot.parts) {
    std::int64_t at = 0;
    bool inside = true;
    for (std::size_t d = 0; d < outer.size(); ++d) {
      const std::int64_t here = outer[d] - part.box.first[d];
      inside = inside && here >= 0 && here < part.box.length[d];
      at = at * part.box.length[d] + here;
    }
    if (!inside) continue;
    const std::int64_t first = part.box.first.back(), count = part.box.length.back();
    std::copy_n(row.begin() + first, count,
                values.begin() + static_cast<std::ptrdiff_t>(part.first) + at * count);
  }
}

/// A part of a tensor: all of it is drawn, row by row, and what is not this rank's left out.
void fill_parts(const Distribution& d, RandomStream& stream, const ParameterSlot& slot,
                std::span<float> values) {
  std::vector<float> row(static_cast<std::size_t>(slot.global.back()));
  Shape outer(slot.global.size() - 1, 0);
  const std::int64_t rows = elements(slot.global) / slot.global.back();
  for (std::int64_t r = 0; r < rows; ++r) {
    fill(d, stream, row);
    take_row(slot, outer, row, values);
    for (std::size_t k = outer.size(); k-- > 0;) {  // the next row
      if (++outer[k] < slot.global[k]) break;
      outer[k] = 0;
    }
  }
}

}  // namespace

void initialise(const ModelGraph& model, const ParameterLayout& layout, std::uint64_t seed,
                Workers& workers, std::span<float> values) {
  RECKON_CHECK(values.size() == layout.count);
  const Rules rules(model);
  workers.run(static_cast<std::int64_t>(layout.slots.size()), [&](std::int64_t task, int) {
    const ParameterSlot& slot = layout.slots[static_cast<std::size_t>(task)];
    RandomStream stream(seed, 0, kWeights, hash_of(slot.name));
    if (slot.pulled) return;
    if (slot.global.empty())
      fill(rules.of(slot), stream, values.subspan(slot.first, slot.count));
    else
      fill_parts(rules.of(slot), stream, slot, values);
  });
}

}  // namespace reckon
