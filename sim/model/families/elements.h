#pragma once
#include <cmath>

#include "sim/model/families/rules.h"

// Layers that work element by element: activations, dropout, sums, products, constants.
namespace reckon::family {

/// Forward: n [DeepSpeed flops profiler]. gelu and silu need what went in for their gradient,
/// relu, tanh and sigmoid what came out.
template <>
struct Rules<Activation> : OneInput, NoAttributes, SameShape, NoWeights, FeatureByFeature, Trained {
  static constexpr std::string_view name = "Activation";
  static LayerOp read(A& a) { return Activation{a.main_word<ActivationKind>()}; }
  static constexpr Kind kind{{"activation", "{activation: relu}"}, read};

  static LayerCount count(const Activation&, Inputs in, const Shape& out, Where) {
    return element_wise(in, out, 1);
  }
  static LayerSaved saved(const Activation& a) {
    const bool input = a.kind == ActivationKind::gelu || a.kind == ActivationKind::silu;
    return {.inputs = input ? LayerSaved::Inputs::always : LayerSaved::Inputs::never,
            .output = !input};
  }
};

/// Forward: n [DeepSpeed flops profiler]; keeps its mask, a byte an element. Of rate 0 it moves
/// nothing.
template <>
struct Rules<Dropout> : OneInput, SameShape, NoWeights, FeatureByFeature, Trained {
  static constexpr std::string_view name = "Dropout";
  static LayerOp read(A& a) { return Dropout{a.main_real(), a.flag("whole_sample", false)}; }
  static constexpr Kind kind{{"dropout", "{dropout: 0.5}"}, read};

  static Checked check(const Dropout& drop) { return check_rate(drop.rate); }
  static LayerCount count(const Dropout& drop, Inputs in, const Shape& out, Where) {
    if (drop.rate == 0) return {};
    LayerCount c = element_wise(in, out, 1);
    c.saved_fixed = kMask * (drop.whole_sample ? 1 : size(out));
    return c;
  }
  static LayerSaved saved(const Dropout& drop) { return {.view = drop.rate == 0}; }
};

/// Forward: n for each input beyond the first.
template <>
struct Rules<Add> : TwoOrMore, NoAttributes, NoWeights, SavesNothing, FeatureByFeature, Trained {
  static constexpr std::string_view name = "Add";
  static LayerOp read(A&) { return Add{}; }
  static constexpr Kind kind{{"add", "{add: \"a, b\"}"}, read, true};

  static Result shape(const Add&, Inputs in, const Shape&) {
    const Shape &a = *in[0], &b = *in[1];
    if (in.size() == 2 && a.size() == 3 && b == Shape{a[0]}) return a;
    return all_equal(in);
  }
  static LayerCount count(const Add&, Inputs in, const Shape& out, Where) {
    return element_wise(in, out, static_cast<double>(in.size() - 1));
  }
};

/// Forward: n.
template <>
struct Rules<Multiply>
    : TwoInputs, NoAttributes, NoWeights, SavesInputs, FeatureByFeature, Trained {
  static constexpr std::string_view name = "Multiply";
  static LayerOp read(A&) { return Multiply{}; }
  static constexpr Kind kind{{"multiply", "{multiply: \"a, b\"}"}, read, true};

  static Result shape(const Multiply&, Inputs in, const Shape&) {
    const Shape &a = *in[0], &b = *in[1];
    const bool a_channel = a.size() == 3 && b == Shape{a[0]};
    const bool a_token = a.size() == 2 && b == Shape{a[0], 1};
    if (a_channel || a_token) return a;
    return all_equal(in);
  }
  static LayerCount count(const Multiply&, Inputs in, const Shape& out, Where) {
    return element_wise(in, out, 1);
  }
};

/// Forward: n.
template <>
struct Rules<ScaleBy> : OneInput, SameShape, NoWeights, SavesNothing, FeatureByFeature, Trained {
  static constexpr std::string_view name = "ScaleBy";
  static LayerOp read(A& a) { return ScaleBy{a.main_real()}; }
  static constexpr Kind kind{{"scale", "{scale: 0.5}"}, read};

  static Checked check(const ScaleBy& x) {
    if (std::isfinite(x.factor)) return std::nullopt;
    return ShapeError{fmt::format("the factor is {}", x.factor), {}};
  }
  static LayerCount count(const ScaleBy&, Inputs in, const Shape& out, Where) {
    return element_wise(in, out, 1);
  }
};

/// Forward: n for each vector.
template <>
struct Rules<Modulate> : NoAttributes, NoWeights, SavesInputs, FeatureByFeature, OnlySimulated {
  static constexpr std::string_view name = "Modulate";
  static constexpr Arity arity{2, 3, "tokens, a scale and perhaps a shift"};
  static LayerOp read(A& a) { return Modulate{a.flag("gate", false)}; }
  static constexpr Kind kind{{"modulate", "{modulate: \"x, scale, shift\"}"}, read, true};

  static Result shape(const Modulate&, Inputs in, const Shape&) {
    if (in[0]->size() != 2) return tokens_expected(*in[0]);
    for (const Shape* vector : in.subspan(1)) {
      if (*vector == Shape{in[0]->back()}) continue;
      return error(fmt::format("takes ({}) beside {}, its input is {}", in[0]->back(),
                               to_text(*in[0]), to_text(*vector)));
    }
    return *in[0];
  }
  static LayerCount count(const Modulate&, Inputs in, const Shape& out, Where) {
    return element_wise(in, out, static_cast<double>(in.size() - 1));
  }
};

/// Forward: n, 2 n with a divisor.
template <>
struct Rules<FeatureScale> : SavesInputs, FeatureByFeature, OnlySimulated {
  static constexpr std::string_view name = "FeatureScale";
  static constexpr Arity arity{1, 2, "tokens, and perhaps a divisor of each feature"};
  static LayerOp read(A& a) {
    a.no_main();
    return FeatureScale{a.number("width", a.features())};
  }
  static constexpr Kind kind{{"feature_scale", "{feature_scale: true}"}, read};

  static Checked check(const FeatureScale& f) { return check_sizes({{"width", f.width}}); }
  static Result shape(const FeatureScale& f, Inputs in, const Shape&) {
    if (in.size() == 2 && *in[1] != Shape{f.width})
      return error(fmt::format("divides by ({}), its input is {}", f.width, to_text(*in[1])));
    return same_if_last_is(*in[0], f.width, "features");
  }
  static LayerCount count(const FeatureScale&, Inputs in, const Shape& out, Where) {
    return element_wise(in, out, static_cast<double>(in.size()));
  }
  static LayerWeights weights(const FeatureScale& f) { return {.weight = {f.width}, .bias = {}}; }
};

/// Forward: n.
template <>
struct Rules<PairSums>
    : TwoInputs, NoAttributes, NoWeights, SavesNothing, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "PairSums";
  static constexpr Kind kind{
      {"pair_sums", "{pair_sums: \"frames, symbols\"}"}, plain<PairSums>, true};

  static Result shape(const PairSums&, Inputs in, const Shape&) {
    const Shape &a = *in[0], &b = *in[1];
    if (a.size() != 2 || b.size() != 2 || a[1] != b[1]) {
      return error(
          fmt::format("takes (T, D) and (U, D), its inputs are {} and {}", to_text(a), to_text(b)));
    }
    return Shape{a[0] * b[0], a[1]};
  }
  static LayerCount count(const PairSums&, Inputs in, const Shape& out, Where) {
    return element_wise(in, out, 1);
  }
};

}  // namespace reckon::family
