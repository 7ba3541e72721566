#include <cmath>
#include <concepts>

#include "sim/model/counts.h"
#include "sim/model/shapes.h"

// What each kind of layer has of weights, and what it keeps for its backward pass.
namespace reckon {
namespace {

double as_double(std::int64_t x) { return static_cast<double>(x); }

// A new kind stands in each of the lists below or is handled by itself: one that is forgotten does
// not compile, so that no weight and no kept tensor is missing from a model unnoticed.
template <class Op, class... Ops>
concept OneOf = (std::same_as<Op, Ops> || ...);

template <class Op>
concept Weightless =
    OneOf<Op, InputLayer, Activation, Pool2d, GlobalAveragePool, Flatten, Dropout, RotaryEmbedding,
          Attention, SelectTokens, Add, Multiply, SoftmaxCrossEntropy, SinusoidalPositions,
          ImageTokens, SelectFeatures, PairwiseDots, ExpertDispatch, ExpertCombine, Concat, ScaleBy,
          SigmoidCrossEntropy, MeanSquaredError, ExtraInput, Upsample, RoiAlign, RegionTokens,
          RegroupTokens, PairSums, ConcatToHeads>;

/// Its backward pass needs what went in, where its weights are trained.
template <class Op>
concept KeepsInputsToLearn =
    OneOf<Op, Linear, Conv2d, Embedding, EmbeddingBag, ExpertLinear, Conv3d, TransposedConv>;
/// Its backward pass needs what went in.
template <class Op>
concept KeepsInputs =
    OneOf<Op, GroupNorm, Recurrence, BatchNorm, LayerNorm, RmsNorm, Pool2d, Multiply, Attention,
          PairwiseDots, ExpertCombine, SigmoidCrossEntropy, MeanSquaredError>;
template <class Op>
concept KeepsNoInputs =
    OneOf<Op, InputLayer, GlobalAveragePool, Flatten, Dropout, PositionEmbedding, RotaryEmbedding,
          SelectTokens, Add, SoftmaxCrossEntropy, SinusoidalPositions, ClassToken, ImageTokens,
          SelectFeatures, ExpertDispatch, Concat, ScaleBy, ExtraInput, Upsample, RoiAlign,
          RegionTokens, RegroupTokens, PairSums, ConcatToHeads>;

}  // namespace

double weight_elements(const LayerOp& op) {
  return std::visit(
      overloaded{[](const Linear& l) {
                   return as_double(l.in) * as_double(l.out) + (l.bias ? as_double(l.out) : 0);
                 },
                 [](const Conv2d& c) {
                   const double kernel =
                       as_double(c.kernel_h) * as_double(c.kernel_w) * as_double(c.in / c.groups);
                   return kernel * as_double(c.out) + (c.bias ? as_double(c.out) : 0);
                 },
                 [](const BatchNorm& n) { return 2 * as_double(n.channels); },
                 [](const LayerNorm& n) { return (n.bias ? 2 : 1) * as_double(n.width); },
                 [](const RmsNorm& n) { return as_double(n.width); },
                 [](const ClassToken& c) { return as_double(c.width); },
                 [](const EmbeddingBag& e) { return as_double(e.rows) * as_double(e.width); },
                 [](const ExpertLinear& e) {
                   return as_double(e.experts) * (as_double(e.in) + (e.bias ? 1 : 0)) *
                          as_double(e.out);
                 },
                 [](const Conv3d& c) {
                   const double kernel = as_double(c.kernel) * as_double(c.kernel) *
                                         as_double(c.kernel) * as_double(c.in);
                   return (kernel + (c.bias ? 1 : 0)) * as_double(c.out);
                 },
                 [](const TransposedConv& c) {
                   const double kernel =
                       std::pow(as_double(c.kernel), as_double(c.dimensions)) * as_double(c.in);
                   return (kernel + (c.bias ? 1 : 0)) * as_double(c.out);
                 },
                 [](const GroupNorm& n) { return 2 * as_double(n.channels); },
                 [](const Recurrence& r) {
                   return as_double(r.gates) * as_double(r.hidden) * (as_double(r.hidden) + 1);
                 },
                 [](const Embedding& e) { return as_double(e.rows) * as_double(e.width); },
                 [](const PositionEmbedding& e) { return as_double(e.rows) * as_double(e.width); },
                 [](const Weightless auto&) { return 0.0; }},
      op);
}

double untied_elements(const LayerOp& op) {
  const Linear* linear = std::get_if<Linear>(&op);
  return linear && linear->bias ? as_double(linear->out) : 0;
}

bool keeps_inputs(const LayerOp& op, bool frozen) {
  return std::visit(overloaded{[&](const KeepsInputsToLearn auto&) { return !frozen; },
                               [](const KeepsInputs auto&) { return true; },
                               [](const KeepsNoInputs auto&) { return false; },
                               [](const Activation& a) {
                                 return a.kind == ActivationKind::gelu ||
                                        a.kind == ActivationKind::silu;
                               }},
                    op);
}

bool keeps_output(const LayerOp& op) {
  if (const Activation* a = std::get_if<Activation>(&op)) return !keeps_inputs(*a, false);
  return std::holds_alternative<Attention>(op) || std::holds_alternative<Recurrence>(op);
}

}  // namespace reckon
