#pragma once
#include "sim/model/families/rules.h"

// Tables of vectors that ids look up, and what tells tokens where they stand.
namespace reckon::family {

constexpr double kRotaryFlops = 3;  // an element: x cos + rotate(x) sin

/// Forward: nothing; backward: n additions (scatter).
template <>
struct Rules<Embedding> : OneInput, SavesInputsToLearn, Trained {
  static constexpr std::string_view name = "Embedding";
  static LayerOp read(A& a) { return Embedding{a.number("rows", std::nullopt), a.main_number()}; }
  static constexpr Kind kind{{"embedding", "{embedding: 768, rows: 50257}"}, read};

  static Checked check(const Embedding& e) {
    return check_sizes({{"rows", e.rows}, {"width", e.width}});
  }
  static Result shape(const Embedding& e, Inputs in, const Shape&) {
    if (in[0]->size() == 1) return Shape{in[0]->front(), e.width};
    return not_taken("token ids (T)", *in[0]);
  }
  static LayerCount count(const Embedding&, Inputs, const Shape& out, Where) { return gather(out); }
  static LayerWeights weights(const Embedding& e) {
    return {.weight = {e.rows, e.width}, .bias = {}, .looked_up = true};
  }
  static SplitRule split(const Embedding&) { return SplitRule::rows; }
};

/// Forward: n for each id beyond the first; backward: n for each id.
template <>
struct Rules<EmbeddingBag> : OneInput, SavesInputsToLearn, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "EmbeddingBag";
  static LayerOp read(A& a) {
    return EmbeddingBag{a.number("rows", std::nullopt), a.main_number(),
                        a.number("ids", a.features())};
  }
  static constexpr Kind kind{{"embedding_bag", "{embedding_bag: 128, rows: 40000000}"}, read};

  static Checked check(const EmbeddingBag& e) {
    return check_sizes({{"rows", e.rows}, {"width", e.width}, {"ids", e.ids}});
  }
  static Result shape(const EmbeddingBag& e, Inputs in, const Shape&) {
    if (*in[0] == Shape{e.ids}) return Shape{e.width};
    return error(fmt::format("takes {} ids, its input is {}", e.ids, to_text(*in[0])));
  }
  static LayerCount count(const EmbeddingBag& e, Inputs, const Shape& out, Where) {
    LayerCount c = gather(out);
    c.elements_in = d(e.ids) * size(out);
    c.forward = Flops{(d(e.ids) - 1) * size(out)};
    c.backward = Flops{c.elements_in};
    return c;
  }
  static LayerWeights weights(const EmbeddingBag& e) {
    return {.weight = {e.rows, e.width}, .bias = {}, .looked_up = true};
  }
};

/// Forward: n.
template <>
struct Rules<PositionEmbedding> : OneInput, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "PositionEmbedding";
  static LayerOp read(A& a) {
    return PositionEmbedding{a.main_number(), a.number("width", a.features())};
  }
  static constexpr Kind kind{{"position_embedding", "{position_embedding: 1024}"}, read};

  static Checked check(const PositionEmbedding& e) {
    return check_sizes({{"rows", e.rows}, {"width", e.width}});
  }
  static Result shape(const PositionEmbedding& e, Inputs in, const Shape&) {
    if (in[0]->size() != 2) return tokens_expected(*in[0]);
    if (in[0]->front() > e.rows) {
      return error(
          fmt::format("has {} positions, the sequence has {} tokens", e.rows, in[0]->front()),
          "shorten the sequence or give the table more rows");
    }
    return same_if_last_is(*in[0], e.width, "features");
  }
  static LayerCount count(const PositionEmbedding&, Inputs in, const Shape& out, Where) {
    return element_wise(in, out, 1);
  }
  static LayerWeights weights(const PositionEmbedding& e) {
    return {.weight = {e.rows, e.width}, .bias = {}};
  }
};

/// Forward: 3 n of what is rotated.
template <>
struct Rules<RotaryEmbedding> : OneInput, NoWeights, SavesNothing, FeatureByFeature, Trained {
  static constexpr std::string_view name = "RotaryEmbedding";
  static LayerOp read(A& a) {
    return RotaryEmbedding{a.main_number(), a.real("theta", 10000), a.number("rotated", 0)};
  }
  static constexpr Kind kind{{"rotary_embedding", "{rotary_embedding: 128, theta: 500000}"}, read};

  static Checked check(const RotaryEmbedding& r) {
    if (auto e = check_sizes({{"head_width", r.head_width}, {"rotated", r.rotated, 0}})) return e;
    if (r.rotated > r.head_width || r.rotated % 2 != 0) {
      return ShapeError{fmt::format("rotates {} of {} features of a head", r.rotated, r.head_width),
                        "an even number of them, 0 for all"};
    }
    if (r.head_width % 2 == 0 && r.theta > 0) return std::nullopt;
    return ShapeError{fmt::format("head_width is {} and theta {}", r.head_width, r.theta),
                      "head_width must be even, theta positive"};
  }
  static Result shape(const RotaryEmbedding& r, Inputs in, const Shape&) {
    if (in[0]->size() == 2 && in[0]->back() % r.head_width == 0) return *in[0];
    return error(fmt::format("takes heads of {} features (T, heads * {}), its input is {}",
                             r.head_width, r.head_width, to_text(*in[0])));
  }
  static LayerCount count(const RotaryEmbedding& r, Inputs in, const Shape& out, Where) {
    LayerCount c = element_wise(in, out, kRotaryFlops);
    if (r.rotated > 0) c.forward = c.backward = c.forward * (d(r.rotated) / d(r.head_width));
    return c;
  }
};

/// Forward: n.
template <>
struct Rules<SinusoidalPositions> : OneInput, NoWeights, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "SinusoidalPositions";
  static LayerOp read(A& a) {
    a.no_main();
    return SinusoidalPositions{a.number("width", a.features())};
  }
  static constexpr Kind kind{{"sinusoidal_positions", "{sinusoidal_positions: true}"}, read};

  static Checked check(const SinusoidalPositions& p) { return check_sizes({{"width", p.width}}); }
  static Result shape(const SinusoidalPositions& p, Inputs in, const Shape&) {
    if (in[0]->size() != 2) return tokens_expected(*in[0]);
    return same_if_last_is(*in[0], p.width, "features");
  }
  static LayerCount count(const SinusoidalPositions&, Inputs in, const Shape& out, Where) {
    return element_wise(in, out, 1);
  }
};

template <>
struct Rules<ClassToken> : OneInput, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "ClassToken";
  static LayerOp read(A& a) {
    a.no_main();
    return ClassToken{a.number("width", a.features())};
  }
  static constexpr Kind kind{{"class_token", "{class_token: true}"}, read};

  static Checked check(const ClassToken& c) { return check_sizes({{"width", c.width}}); }
  static Result shape(const ClassToken& c, Inputs in, const Shape&) {
    if (in[0]->size() != 2) return tokens_expected(*in[0]);
    Result result = same_if_last_is(*in[0], c.width, "features");
    if (result) result->front() += 1;
    return result;
  }
  static LayerCount count(const ClassToken&, Inputs in, const Shape& out, Where) {
    return copy(in, out);
  }
  static LayerWeights weights(const ClassToken& c) { return {.weight = {c.width}, .bias = {}}; }
};

}  // namespace reckon::family
