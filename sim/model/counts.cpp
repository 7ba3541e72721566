#include "sim/model/counts.h"

#include <algorithm>
#include <cmath>

#include "sim/model/shapes.h"

namespace reckon {
namespace {

using Inputs = std::span<const Shape* const>;

// [Hoffmann 2022, appendix F]: exponential, sum, division.
constexpr double kSoftmaxFlops = 3;
constexpr double kNormFlops = 5;
constexpr double kRmsNormFlops = 4;
constexpr double kRotaryFlops = 3;
constexpr double kSquareFlops = 3;   // difference, square, sum
constexpr double kRoiReads = 4 * 4;  // four points a bin, each between four of the map
constexpr double kRoiFlops = 2 * kRoiReads;
constexpr double kGateFlops = 4;  // sigmoid or tanh, and its part in the state
constexpr Bytes kStatistic{4};    // fp32, whatever the layers run in
constexpr Bytes kMask{1};         // torch.bool
constexpr Bytes kIndex{8};        // torch.int64

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
  result.small_square = c.kernel_h == 3 && c.kernel_w == 3 && c.stride == 1 && c.groups == 1;
  return result;
}

LayerCount count(const ExpertLinear& e, Inputs in, const Shape& out, bool gradient) {
  return product(in.first(1), out, WorkKind::matmul, Flops{2 * d(e.in) * d(e.out) * rows(out)},
                 gradient);
}

LayerCount count(const PairwiseDots& p, Inputs in, const Shape& out, bool gradient) {
  const Flops all_pairs{2 * d(p.vectors) * d(p.vectors) * d(p.width)};
  return product(in, out, WorkKind::matmul, all_pairs, gradient);
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

LayerCount count(const RmsNorm& r, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, kRmsNormFlops);
  c.saved_fixed = kStatistic * rows(out) * d(r.heads);
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
  c.saved_fixed = kMask * (drop.whole_sample ? 1 : size(out));
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

LayerCount count(const SelectFeatures&, Inputs, const Shape& out, bool) { return gather(out); }
LayerCount count(const EmbeddingBag& e, Inputs, const Shape& out, bool) {
  LayerCount c = gather(out);
  c.elements_in = d(e.ids) * size(out);
  c.forward = Flops{(d(e.ids) - 1) * size(out)};
  c.backward = Flops{c.elements_in};
  return c;
}

/// Moves its input: as many elements as come out.
LayerCount copy(Inputs in, const Shape& out) { return element_wise(in, out, 0); }
LayerCount count(const ClassToken&, Inputs in, const Shape& out, bool) { return copy(in, out); }
LayerCount count(const ImageTokens&, Inputs in, const Shape& out, bool) { return copy(in, out); }
LayerCount count(const Concat&, Inputs in, const Shape& out, bool) { return copy(in, out); }

/// The gradient of a token is the sum of its rows'.
LayerCount count(const ExpertDispatch&, Inputs in, const Shape& out, bool) {
  LayerCount c = gather(out);
  c.backward = Flops{size(out) - size(*in[0])};
  return c;
}
LayerCount count(const ExpertCombine& e, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, 2 * d(e.top_k));
  c.forward += Flops{kSoftmaxFlops * size(*in[1])};
  c.backward = c.forward;
  c.saved_fixed = (kStatistic + kIndex) * d(e.top_k) * rows(out);
  return c;
}

LayerCount count(const PositionEmbedding&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, 1);
}
LayerCount count(const SinusoidalPositions&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, 1);
}
LayerCount count(const ScaleBy&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, 1);
}
LayerCount count(const RotaryEmbedding& r, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, kRotaryFlops);
  if (r.rotated > 0) c.forward = c.backward = c.forward * (d(r.rotated) / d(r.head_width));
  return c;
}

LayerCount count(const Attention& a, Inputs in, const Shape& out, bool) {
  const double tokens = d(out[0]);
  const double others = in.size() >= 3 ? d(in[1]->front()) : tokens;
  const double scores =
      tokens * (a.window > 0 ? std::min(d(a.window), others) : others) * d(a.heads);
  const double keys = in.size() == 4 ? 2 : 1;  // the second: of the distances
  const double products = scores * (keys * d(a.head_width) + d(a.values()));
  LayerCount c = product(in, out, WorkKind::attention, Flops{2 * products}, true);
  c.forward += Flops{kSoftmaxFlops * scores};
  c.backward += Flops{kSoftmaxFlops * scores};
  c.saved_fixed = kStatistic * tokens * d(a.heads);
  return c;
}

LayerCount count(const ExtraInput&, Inputs, const Shape&, bool) { return {}; }
LayerCount count(const RegroupTokens&, Inputs, const Shape&, bool) { return {}; }
LayerCount count(const Conv3d& c, Inputs in, const Shape& out, bool gradient) {
  const double per_output = 2 * d(c.kernel) * d(c.kernel) * d(c.kernel) * d(c.in);
  return product(in, out, WorkKind::convolution, Flops{per_output * size(out)}, gradient);
}
LayerCount count(const TransposedConv& c, Inputs in, const Shape& out, bool gradient) {
  const double per_input = 2 * std::pow(d(c.kernel), d(c.dimensions)) * d(c.out);
  return product(in, out, WorkKind::convolution, Flops{per_input * size(*in[0])}, gradient);
}
LayerCount count(const GroupNorm& n, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, kNormFlops);
  c.elements_in *= 2;
  c.saved_fixed = kStatistic * 2 * d(n.groups);
  return c;
}
LayerCount count(const Upsample&, Inputs in, const Shape& out, bool) {
  LayerCount c = element_wise(in, out, 0);
  c.backward = Flops{size(out)};
  return c;
}
LayerCount count(const RoiAlign&, Inputs, const Shape& out, bool) {
  LayerCount c = element_wise({}, out, kRoiFlops);
  c.elements_in = kRoiReads * size(out);
  return c;
}
LayerCount count(const RegionTokens&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, 0);
}
LayerCount count(const PairSums&, Inputs in, const Shape& out, bool) {
  return element_wise(in, out, 1);
}
LayerCount count(const ConcatToHeads&, Inputs in, const Shape& out, bool) { return copy(in, out); }
LayerCount count(const Recurrence& r, Inputs in, const Shape& out, bool) {
  const double gates = d(r.gates) * d(r.hidden);
  LayerCount c =
      product(in, out, WorkKind::matmul, Flops{2 * gates * d(r.hidden) * rows(out)}, true);
  c.forward += Flops{kGateFlops * gates * rows(out)};
  c.backward += Flops{kGateFlops * gates * rows(out)};
  c.steps = out.front();
  // The cell's state of each step, beside the gates (the input) and the outputs.
  c.saved_fixed = kStatistic * size(out);
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
  c.in_fp32 = true;
  c.saved_fixed = kStatistic * size(*in[0]);
  return c;
}
LayerCount count(const SigmoidCrossEntropy&, Inputs in, const Shape&, bool) {
  return element_wise(in, *in[0], kSoftmaxFlops);
}
LayerCount count(const MeanSquaredError&, Inputs in, const Shape&, bool) {
  return element_wise(in, *in[0], kSquareFlops);
}

}  // namespace

bool only_simulated(const LayerOp& op) {
  return std::visit(
      overloaded{[](const ExtraInput&) { return true; }, [](const Conv3d&) { return true; },
                 [](const TransposedConv&) { return true; }, [](const GroupNorm&) { return true; },
                 [](const Upsample&) { return true; }, [](const RoiAlign&) { return true; },
                 [](const RegionTokens&) { return true; },
                 [](const RegroupTokens&) { return true; }, [](const PairSums&) { return true; },
                 [](const ConcatToHeads&) { return true; },
                 [](const Attention& a) { return a.values() != a.head_width; },
                 [](const Recurrence&) { return true; }, [](const auto&) { return false; }},
      op);
}

bool is_view(const LayerOp& op) {
  if (const Dropout* drop = std::get_if<Dropout>(&op)) return drop->rate == 0;
  return std::holds_alternative<Flatten>(op) || std::holds_alternative<RegroupTokens>(op);
}

LayerCount count_layer(const Layer& layer, std::span<const Shape* const> inputs,
                       bool input_has_gradient) {
  LayerCount c = std::visit(
      [&](const auto& op) { return count(op, inputs, layer.output, input_has_gradient); },
      layer.op);
  const double weights = weight_elements(layer.op);
  c.parameters = static_cast<std::int64_t>(layer.tied_to ? untied_elements(layer.op) : weights);
  const ExpertLinear* experts = std::get_if<ExpertLinear>(&layer.op);
  c.active_parameters = experts ? c.parameters / experts->experts * experts->top_k : c.parameters;
  c.trainable_parameters = layer.frozen ? 0 : c.parameters;
  const bool looked_up =
      std::holds_alternative<Embedding>(layer.op) || std::holds_alternative<EmbeddingBag>(layer.op);
  c.weights_read = looked_up ? 0 : static_cast<std::int64_t>(weights);

  c.model = 3 * c.matrix;
  if (layer.frozen && weights > 0) {
    c.model = (input_has_gradient ? 2 : 1) * c.matrix;
    if (c.matrix.v > 0) c.backward = c.forward;
  }
  if (layer.frozen && std::holds_alternative<BatchNorm>(layer.op)) c.elements_in /= 2;
  const bool learns = weights > 0 && !layer.frozen;
  c.has_backward = learns || input_has_gradient;
  c.frozen = layer.frozen;
  if (!c.has_backward) {
    c.backward = Flops{0};
    c.saved_fixed = Bytes{0};
  }
  return c;
}

}  // namespace reckon
