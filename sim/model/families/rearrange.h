#pragma once
#include <cmath>

#include "sim/model/families/rules.h"

// The same elements in another shape or order: no arithmetic. Flatten and RegroupTokens move
// nothing, the others copy.
namespace reckon::family {

template <>
struct Rules<Flatten> : OneInput, NoAttributes, NoWeights, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "Flatten";
  static constexpr Kind kind{{"flatten", "{flatten: true}"}, plain<Flatten>};

  static Result shape(const Flatten&, Inputs in, const Shape&) { return Shape{elements(*in[0])}; }
  static LayerCount count(const Flatten&, Inputs, const Shape&, Where) { return {}; }
  static LayerSaved saved(const Flatten&) { return {.view = true}; }
};

template <>
struct Rules<ImageTokens>
    : OneInput, NoAttributes, NoWeights, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "ImageTokens";
  static constexpr Kind kind{{"image_tokens", "{image_tokens: true}"}, plain<ImageTokens>};

  /// The side of the square image that (T, C) is.
  static std::optional<std::int64_t> square_side(const Shape& tokens) {
    if (tokens.size() != 2) return std::nullopt;
    const auto side = std::llround(std::sqrt(static_cast<double>(tokens[0])));
    if (side * side != tokens[0]) return std::nullopt;
    return side;
  }
  static Result shape(const ImageTokens&, Inputs in, const Shape&) {
    if (const auto side = square_side(*in[0])) return Shape{in[0]->back(), *side, *side};
    if (in[0]->size() != 3) return image_expected(*in[0]);
    return Shape{(*in[0])[1] * (*in[0])[2], in[0]->front()};
  }
  static LayerCount count(const ImageTokens&, Inputs in, const Shape& out, Where) {
    return copy(in, out);
  }
};

template <>
struct Rules<Concat> : TwoOrMore, NoAttributes, NoWeights, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "Concat";
  static LayerOp read(A&) { return Concat{}; }
  static constexpr Kind kind{{"concat", "{concat: \"a, b\"}"}, read, true};

  /// All dimensions agree but one: the first of images and volumes, the last of all others.
  static Result shape(const Concat&, Inputs in, const Shape&) {
    Result result = *in[0];
    const std::size_t axis = in[0]->size() >= 3 ? 0 : in[0]->size() - 1;
    for (const Shape* shape : in.subspan(1)) {
      Shape other = *shape;
      const bool same_rank = other.size() == result->size();
      if (same_rank) other[axis] = (*in[0])[axis];
      if (other != *in[0]) {
        return error(fmt::format("cannot put {} beside {}", to_text(*shape), to_text(*in[0])),
                     "images share height and width, sequences their tokens");
      }
      (*result)[axis] += (*shape)[axis];
    }
    return result;
  }
  static LayerCount count(const Concat&, Inputs in, const Shape& out, Where) {
    return copy(in, out);
  }
};

template <>
struct Rules<JoinTokens>
    : TwoOrMore, NoAttributes, NoWeights, SavesNothing, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "JoinTokens";
  static LayerOp read(A&) { return JoinTokens{}; }
  static constexpr Kind kind{{"join_tokens", "{join_tokens: \"image, text\"}"}, read, true};

  static Result shape(const JoinTokens&, Inputs in, const Shape&) {
    std::int64_t tokens = 0;
    for (const Shape* shape : in) {
      if (shape->size() != 2 || shape->back() != in[0]->back())
        return error(fmt::format("cannot put {} behind {}", to_text(*shape), to_text(*in[0])),
                     "tokens of the same number of features");
      tokens += shape->front();
    }
    return Shape{tokens, in[0]->back()};
  }
  static LayerCount count(const JoinTokens&, Inputs in, const Shape& out, Where) {
    return copy(in, out);
  }
};

template <>
struct Rules<RegionTokens> : OneInput, NoWeights, SavesNothing, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "RegionTokens";
  static LayerOp read(A& a) { return RegionTokens{a.main_number()}; }
  static constexpr Kind kind{{"region_tokens", "{region_tokens: 512}"}, read};

  static Checked check(const RegionTokens& r) { return check_sizes({{"regions", r.regions}}); }
  static Result shape(const RegionTokens& r, Inputs in, const Shape&) {
    const Shape& s = *in[0];
    if (s.size() != 3 || s[1] != r.regions * s[2])
      return not_taken(fmt::format("{} regions (C, {} S, S)", r.regions, r.regions), s);
    return Shape{r.regions, s[0] * s[2] * s[2]};
  }
  static LayerCount count(const RegionTokens&, Inputs in, const Shape& out, Where) {
    return copy(in, out);
  }
};

template <>
struct Rules<RegroupTokens> : OneInput, NoWeights, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "RegroupTokens";
  static LayerOp read(A& a) {
    a.no_main();
    return RegroupTokens{a.number("join", 1), a.number("split", 1)};
  }
  static constexpr Kind kind{{"regroup_tokens", "{regroup_tokens: true, join: 2, split: 1}"}, read};

  static Checked check(const RegroupTokens& r) {
    return check_sizes({{"join", r.join}, {"split", r.split}});
  }
  static Result shape(const RegroupTokens& r, Inputs in, const Shape&) {
    const Shape& s = *in[0];
    if (s.size() != 2) return tokens_expected(s);
    if (s[1] * r.join % r.split != 0) {
      return error(fmt::format("cannot split {} features into {} tokens", s[1] * r.join, r.split));
    }
    return Shape{(s[0] + r.join - 1) / r.join * r.split, s[1] * r.join / r.split};
  }
  static LayerCount count(const RegroupTokens&, Inputs, const Shape&, Where) { return {}; }
  static LayerSaved saved(const RegroupTokens&) { return {.view = true}; }
};

}  // namespace reckon::family
