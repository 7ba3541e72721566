#include "sim/model/layer_rules.h"

#include <array>
#include <utility>
#include <variant>

#include "sim/model/counts.h"
#include "sim/model/families/attention.h"
#include "sim/model/families/convolution.h"
#include "sim/model/families/elements.h"
#include "sim/model/families/embedding.h"
#include "sim/model/families/experts.h"
#include "sim/model/families/inputs.h"
#include "sim/model/families/linear.h"
#include "sim/model/families/losses.h"
#include "sim/model/families/norm.h"
#include "sim/model/families/pool.h"
#include "sim/model/families/rearrange.h"
#include "sim/model/families/recurrent.h"
#include "sim/model/families/state_space.h"
#include "sim/model/layer_text.h"
#include "sim/model/shapes.h"

// The table of all kinds of layers: each rule is asked of every kind in LayerOp, so a kind that
// lacks one does not compile.
namespace reckon {
namespace {

using family::Inputs;
using family::Rules;

/// f(Rules<Op>, op) of the kind that it is.
template <class F>
auto by_kind(const LayerOp& op, F f) {
  return std::visit([&]<class Op>(const Op& layer) { return f(Rules<Op>{}, layer); }, op);
}

template <std::size_t... I>
constexpr std::array<layer_text::Kind, sizeof...(I)> all_kinds(std::index_sequence<I...>) {
  return {Rules<std::variant_alternative_t<I, LayerOp>>::kind...};
}
constexpr auto kKinds = all_kinds(std::make_index_sequence<std::variant_size_v<LayerOp>>{});

/// Exact below 2^53, and cannot overflow; 0 for no tensor.
double elements_as_double(const Shape& shape) {
  double count = shape.empty() ? 0 : 1;
  for (const std::int64_t n : shape) count *= static_cast<double>(n);
  return count;
}

}  // namespace

std::span<const layer_text::Kind> layer_text::kinds() { return kKinds; }

std::string_view kind_name(const LayerOp& op) {
  return by_kind(op, [](auto rules, const auto&) { return rules.name; });
}

std::optional<ShapeError> check_attributes(const LayerOp& op) {
  return by_kind(op, [](auto rules, const auto& layer) -> std::optional<ShapeError> {
    return rules.check(layer);
  });
}

tl::expected<Shape, ShapeError> infer_shape(const LayerOp& op, Inputs inputs, const Shape& input) {
  const family::Arity takes = by_kind(op, [](auto rules, const auto&) { return rules.arity; });
  if (inputs.size() < takes.least || inputs.size() > takes.most)
    return family::error(fmt::format("takes {}, it has {}", takes.text, inputs.size()));
  return by_kind(op, [&](auto rules, const auto& layer) -> family::Result {
    return rules.shape(layer, inputs, input);
  });
}

LayerWeights weights_of(const LayerOp& op) {
  return by_kind(op, [](auto rules, const auto& layer) { return rules.weights(layer); });
}

LayerSaved saved_by(const LayerOp& op) {
  return by_kind(op, [](auto rules, const auto& layer) { return rules.saved(layer); });
}

SplitRule split_rule(const LayerOp& op) {
  return by_kind(op, [](auto rules, const auto& layer) { return rules.split(layer); });
}

bool only_simulated(const LayerOp& op) {
  return by_kind(op, [](auto rules, const auto& layer) { return rules.only_simulated(layer); });
}

double weight_elements(const LayerOp& op) {
  const LayerWeights w = weights_of(op);
  return elements_as_double(w.weight) + elements_as_double(w.bias);
}

bool keeps_inputs(const LayerOp& op, bool frozen) {
  const LayerSaved::Inputs kept = saved_by(op).inputs;
  return kept == LayerSaved::Inputs::always || (kept == LayerSaved::Inputs::to_learn && !frozen);
}
bool keeps_output(const LayerOp& op) { return saved_by(op).output; }
bool is_view(const LayerOp& op) { return saved_by(op).view; }

LayerCount count_layer(const Layer& layer, Inputs inputs, bool input_has_gradient) {
  const family::Where where{input_has_gradient, layer.frozen};
  LayerCount c = by_kind(layer.op, [&](auto rules, const auto& op) {
    return rules.count(op, inputs, layer.output, where);
  });
  const LayerWeights held = weights_of(layer.op);
  const double bias = elements_as_double(held.bias);
  const double weights = elements_as_double(held.weight) + bias;
  const double own = held.shares_bias ? 0 : bias;  // of a tied layer
  c.parameters = static_cast<std::int64_t>(layer.tied_to ? own : weights);
  c.active_parameters = c.parameters / held.parts * held.parts_met;
  c.trainable_parameters = layer.frozen ? 0 : c.parameters;
  c.weights_read += held.looked_up ? 0 : static_cast<std::int64_t>(weights);

  c.model = 3 * c.matrix;
  if (layer.frozen && weights > 0) {
    c.model = (input_has_gradient ? 2 : 1) * c.matrix;
    if (c.matrix.v > 0) c.backward = c.forward;
  }
  const bool learns = weights > 0 && !layer.frozen;
  c.has_backward = learns || input_has_gradient;
  c.frozen = layer.frozen;
  c.four_bit = layer.four_bit;
  if (!c.has_backward) {
    c.backward = Flops{0};
    c.saved_fixed = Bytes{0};
  }
  return c;
}

}  // namespace reckon
