#include "sim/catalog/model_counts.h"

#include "sim/catalog/model_shapes.h"

namespace reckon {
namespace {

using Inputs = std::span<const Shape* const>;

// [Hoffmann 2022, appendix F]: exponential, sum, division.
constexpr double kSoftmaxFlops = 3;
constexpr double kNormFlops = 5;
constexpr double kRmsNormFlops = 4;
constexpr double kRotaryFlops = 3;
constexpr Bytes kStatistic{4};  // fp32, whatever the layers run in
constexpr Bytes kMask{1};       // torch.bool
constexpr Bytes kIndex{8};      // torch.int64

double d(std::int64_t x) { return static_cast<double>(x); }
double size(const Shape& shape) { return d(elements(shape)); }
/// Rows of (T, D): T; of (D): 1.
double rows(const Shape& shape) { return shape.size() == 2 ? d(shape[0]) : 1; }

/// A kernel that reads its inputs once and writes its output once.
LayerCount element_wise(Inputs in, const Shape& out, double flops_per_element) {
  LayerCount c;
  for (const Shape* shape : in) c.elements_in += size(*shape);
  c.elements_out = size(out);
  c.forward = Flops{flops_per_element * c.elements_out};
  c.backward = c.forward;
  return c;
}

LayerCount product(Inputs in, const Shape& out, WorkKind work, Flops forward,
                   bool input_has_gradient) {
  LayerCount c = element_wise(in, out, 0);
  c.work = work;
  c.forward = c.matrix = forward;
  c.backward = forward * (input_has_gradient ? 2 : 1);
  return c;
}

LayerCount count(const InputLayer&, Inputs, const Shape&, bool) { return {}; }
LayerCount count(const Flatten&, Inputs, const Shape&, bool) { return {}; }

LayerCount count(const Linear& l, Inputs in, const Shape& out, bool gradient) {
  return product(in, out, WorkKind::matmul, Flops{2 * d(l.in) * d(l.out) * rows(out)}, gradient);
}

LayerCount count(const Conv2d& c, Inputs in, const Shape& out, bool gradient) {
  const double per_output = 2 * d(c.kernel_h) * d(c.kernel_w) * d(c.in / c.groups);
  LayerCount result =
      product(in, out, WorkKind::convolution, Flops{per_output * size(out)}, gradient);
  result.depthwise = c.groups > 1 && c.groups == c.in;
  return result;
}

LayerCount count(const BatchNorm&, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, kNormFlops);
  c.elements_in *= 2;
  return c;
}

LayerCount count(const LayerNorm&, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, kNormFlops);
  c.saved_fixed = kStatistic * 2 * rows(out);
  return c;
}

LayerCount count(const RmsNorm&, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, kRmsNormFlops);
  c.saved_fixed = kStatistic * rows(out);
  return c;
}

LayerCount count(const Activation&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, 1);
}

LayerCount count(const Pool2d& p, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, d(p.kernel) * d(p.kernel));
  if (p.kind == PoolKind::max) c.saved_fixed = kIndex * size(out);
  return c;
}

LayerCount count(const GlobalAveragePool&, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, 0);
  c.forward = c.backward = Flops{c.elements_in};
  return c;
}

LayerCount count(const Dropout& drop, Inputs in, const Shape& out, bool) {
  if (drop.rate == 0) return {};
  LayerCount c = element_wise(in, out, 1);
  c.saved_fixed = kMask * size(out);
  return c;
}

/// Reads and writes what it takes, not all that is there.
LayerCount gather(const Shape& out) {
  LayerCount c;
  c.elements_in = c.elements_out = size(out);
  c.backward = Flops{size(out)};
  return c;
}
LayerCount count(const Embedding&, Inputs, const Shape& out, bool) { return gather(out); }
LayerCount count(const SelectTokens&, Inputs, const Shape& out, bool) { return gather(out); }

LayerCount count(const PositionEmbedding&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, 1);
}
LayerCount count(const RotaryEmbedding&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, kRotaryFlops);
}

LayerCount count(const Attention& a, Inputs in, const Shape& out, bool) {
  const double tokens = d(out[0]);
  const double scores = tokens * tokens * d(a.heads);
  LayerCount c =
      product(in, out, WorkKind::attention, Flops{2 * 2 * scores * d(a.head_width)}, true);
  c.forward += Flops{kSoftmaxFlops * scores};
  c.backward += Flops{kSoftmaxFlops * scores};
  c.saved_fixed = kStatistic * tokens * d(a.heads);
  return c;
}

LayerCount count(const Add&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, static_cast<double>(in.size() - 1));
}
LayerCount count(const Multiply&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, 1);
}

LayerCount count(const SoftmaxCrossEntropy&, Inputs in, const Shape&, bool) {
  LayerCount c = element_wise(in, *in[0], kSoftmaxFlops);
  c.saved_fixed = kStatistic * size(*in[0]);
  return c;
}

}  // namespace

double weight_elements(const LayerOp& op) {
  return std::visit(
      overloaded{[](const Linear& l) { return d(l.in) * d(l.out) + (l.bias ? d(l.out) : 0); },
                 [](const Conv2d& c) {
                   const double kernel = d(c.kernel_h) * d(c.kernel_w) * d(c.in / c.groups);
                   return kernel * d(c.out) + (c.bias ? d(c.out) : 0);
                 },
                 [](const BatchNorm& n) { return 2 * d(n.channels); },
                 [](const LayerNorm& n) { return (n.bias ? 2 : 1) * d(n.width); },
                 [](const RmsNorm& n) { return d(n.width); },
                 [](const Embedding& e) { return d(e.rows) * d(e.width); },
                 [](const PositionEmbedding& e) { return d(e.rows) * d(e.width); },
                 [](const auto&) { return 0.0; }},
      op);
}

double untied_elements(const LayerOp& op) {
  const Linear* linear = std::get_if<Linear>(&op);
  return linear && linear->bias ? d(linear->out) : 0;
}

bool keeps_inputs(const LayerOp& op) {
  return std::visit(
      overloaded{[](const Linear&) { return true; }, [](const Conv2d&) { return true; },
                 [](const BatchNorm&) { return true; }, [](const LayerNorm&) { return true; },
                 [](const RmsNorm&) { return true; }, [](const Pool2d&) { return true; },
                 [](const Multiply&) { return true; }, [](const Attention&) { return true; },
                 [](const Embedding&) { return true; },
                 [](const Activation& a) {
                   return a.kind == ActivationKind::gelu || a.kind == ActivationKind::silu;
                 },
                 [](const auto&) { return false; }},
      op);
}

bool keeps_output(const LayerOp& op) {
  if (const Activation* a = std::get_if<Activation>(&op)) return !keeps_inputs(*a);
  return std::holds_alternative<Attention>(op);
}

bool is_view(const LayerOp& op) {
  if (const Dropout* drop = std::get_if<Dropout>(&op)) return drop->rate == 0;
  return std::holds_alternative<Flatten>(op);
}

LayerCount count_layer(const Layer& layer, std::span<const Shape* const> inputs,
                       bool input_has_gradient) {
  LayerCount c = std::visit(
      [&](const auto& op) { return count(op, inputs, layer.output, input_has_gradient); },
      layer.op);
  const double weights = weight_elements(layer.op);
  c.parameters = static_cast<std::int64_t>(layer.tied_to ? untied_elements(layer.op) : weights);
  const bool looked_up = std::holds_alternative<Embedding>(layer.op);
  c.weights_read = looked_up ? 0 : static_cast<std::int64_t>(weights);
  if (weights == 0 && !input_has_gradient) c.backward = Flops{0};
  return c;
}

}  // namespace reckon
