#pragma once
#include "sim/model/families/rules.h"

// Products of features: a linear layer, and the dot products of DLRM.
namespace reckon::family {

/// Forward: 2 in out a row; the bias is not counted [Hoffmann 2022, app. F].
template <>
struct Rules<Linear> : OneInput, SavesInputsToLearn, Trained {
  static constexpr std::string_view name = "Linear";
  static LayerOp read(A& a) {
    return Linear{a.number("in", a.features()), a.main_number(), a.flag("bias", true)};
  }
  static constexpr Kind kind{{"linear", "{linear: 10, bias: false}"}, read};

  static Checked check(const Linear& l) { return check_sizes({{"in", l.in}, {"out", l.out}}); }
  static Result shape(const Linear& l, Inputs in, const Shape&) {
    if (in[0]->size() > 2) {
      return error(fmt::format("takes ({0}) or (T, {0}), its input is {1}", l.in, to_text(*in[0])),
                   "put a Flatten or GlobalAveragePool before it");
    }
    Result result = same_if_last_is(*in[0], l.in, "input features");
    if (result) result->back() = l.out;
    return result;
  }
  static LayerCount count(const Linear& l, Inputs in, const Shape& out, Where where) {
    return product(in, out, WorkKind::matmul, Flops{2 * d(l.in) * d(l.out) * rows(out)},
                   where.input_has_gradient);
  }
  static LayerWeights weights(const Linear& l) {
    return {.weight = {l.out, l.in}, .bias = l.bias ? Shape{l.out} : Shape{}};
  }
  static SplitRule split(const Linear&) { return SplitRule::matrix; }
};

/// Forward: 2 k k width for k vectors: all pairs in one batched product, as the reference
/// facebookresearch/dlrm:dlrm_s_pytorch.py computes them.
template <>
struct Rules<PairwiseDots> : TwoOrMore, NoWeights, SavesInputs, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "PairwiseDots";
  static LayerOp read(A& a) { return PairwiseDots{a.inputs(), a.features()}; }
  static constexpr Kind kind{
      {"pairwise_dots", "{pairwise_dots: \"dense, table_0, table_1\"}"}, read, true};

  static Checked check(const PairwiseDots& p) {
    return check_sizes({{"vectors", p.vectors, 2}, {"width", p.width}});
  }
  static Result shape(const PairwiseDots& p, Inputs in, const Shape&) {
    if (static_cast<std::int64_t>(in.size()) != p.vectors)
      return error(fmt::format("is built for {} vectors, it has {}", p.vectors, in.size()));
    for (const Shape* shape : in) {
      if (*shape != Shape{p.width}) {
        return error(
            fmt::format("takes vectors of ({}), its input is {}", p.width, to_text(*shape)));
      }
    }
    return Shape{p.vectors * (p.vectors - 1) / 2};
  }
  static LayerCount count(const PairwiseDots& p, Inputs in, const Shape& out, Where where) {
    const Flops all_pairs{2 * d(p.vectors) * d(p.vectors) * d(p.width)};
    return product(in, out, WorkKind::matmul, all_pairs, where.input_has_gradient);
  }
};

/// Reads the matrix once a pass, whatever the batch; nothing of it is a sample's.
template <>
struct Rules<WeightNorms> : NoInput, NoWeights, SavesNothing, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "WeightNorms";
  static LayerOp read(A& a) { return WeightNorms{a.number("in", std::nullopt), a.main_number()}; }
  static constexpr Kind kind{{"weight_norms", "{weight_norms: 4096, in: 4096}"}, read};

  static Checked check(const WeightNorms& w) { return check_sizes({{"in", w.in}, {"out", w.out}}); }
  static Result shape(const WeightNorms& w, Inputs, const Shape&) { return Shape{w.out}; }
  static LayerCount count(const WeightNorms& w, Inputs, const Shape&, Where) {
    LayerCount c;
    c.weights_read = w.in * w.out;
    return c;
  }
};

/// Forward: 2 multiply_adds, or 1 for each element of the output.
template <>
struct Rules<Operator> : NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "Operator";
  static constexpr Arity arity{0, kManyInputs, "any inputs"};
  static LayerOp read(A& a) {
    Operator op{.output = a.main_shape()};
    op.parameters = a.number("parameters", 0);
    op.multiply_adds = a.real("multiply_adds", 0);
    op.convolution = a.flag("convolution", false);
    op.view = a.flag("view", false);
    op.table = a.flag("table", false);
    return op;
  }
  static constexpr Kind kind{
      {"operator", "{operator: 12x128x128, multiply_adds: 1e7, from: \"q, k\"}"}, read};

  static Checked check(const Operator& op) {
    constexpr double kLargestTensor = 1e15;  // elements, as ModelGraph
    double all = op.output.empty() ? 0 : 1;
    for (const std::int64_t n : op.output) all *= n < 1 || n > kLargestSize ? 0 : d(n);
    if (!(all >= 1 && all <= kLargestTensor))
      return ShapeError{fmt::format("its output is {}", to_text(op.output)), {}};
    constexpr double kMost = 1e24;  // multiply-adds
    if (op.parameters >= 0 && op.multiply_adds >= 0 && op.multiply_adds < kMost)
      return std::nullopt;
    return ShapeError{
        fmt::format("has {} parameters and {} multiply-adds", op.parameters, op.multiply_adds),
        "0 and above"};
  }
  static Result shape(const Operator& op, Inputs in, const Shape&) {
    if (op.view && (in.size() != 1 || elements(*in[0]) < elements(op.output)))
      return error("a view has one input, and shows it or a part of it");
    return op.output;
  }
  static LayerCount count(const Operator& op, Inputs in, const Shape& out, Where where) {
    if (op.view) return {};
    if (op.table) return gather(out);
    if (!(op.multiply_adds > 0)) return element_wise(in, out, 1);
    const WorkKind work = op.convolution ? WorkKind::convolution : WorkKind::matmul;
    return product(in, out, work, Flops{2 * op.multiply_adds}, where.input_has_gradient);
  }
  static LayerWeights weights(const Operator& op) {
    return {.weight = op.parameters > 0 ? Shape{op.parameters} : Shape{},
            .bias = {},
            .looked_up = op.table};
  }
  static LayerSaved saved(const Operator& op) {
    if (op.view) return {.view = true};
    return {.inputs = op.table ? LayerSaved::Inputs::never : LayerSaved::Inputs::always};
  }
};

/// Forward: 2 width samples: a row of the batch's matrix of scores.
template <>
struct Rules<SimilarityScores> : TwoInputs, SavesInputs, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "SimilarityScores";
  static LayerOp read(A& a) {
    return SimilarityScores{a.number("width", a.features()), a.main_number(),
                            a.flag("bias", false)};
  }
  static constexpr Kind kind{
      {"similarity_scores", "{similarity_scores: 32768, from: \"image, text\"}"}, read};

  static Checked check(const SimilarityScores& s) {
    return check_sizes({{"width", s.width}, {"samples", s.samples}});
  }
  static Result shape(const SimilarityScores& s, Inputs in, const Shape&) {
    for (const Shape* vector : in) {
      if (*vector != Shape{s.width})
        return error(
            fmt::format("takes vectors of ({}), its input is {}", s.width, to_text(*vector)));
    }
    return Shape{s.samples};
  }
  static LayerCount count(const SimilarityScores& s, Inputs in, const Shape& out, Where where) {
    return product(in, out, WorkKind::matmul, Flops{2 * d(s.width) * d(s.samples)},
                   where.input_has_gradient);
  }
  static LayerWeights weights(const SimilarityScores& s) {
    return {.weight = {1}, .bias = s.bias ? Shape{1} : Shape{}};
  }
};

}  // namespace reckon::family
