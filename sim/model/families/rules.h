#pragma once
#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/model/layer_rules.h"
#include "sim/model/layer_text.h"
#include "sim/model/shapes.h"

// What a family's file says of a kind of layer: a specialisation of Rules<Op> with all of
//
//   name            "Conv2d", as messages name it
//   kind            how a scenario writes it, and how that is read (layer_text.h)
//   check(op)       attributes by themselves: positive sizes, groups that divide, rates in [0, 1)
//   arity           how many inputs it takes
//   shape(op, in, sample)       of the output of one sample; inputs and attributes are checked.
//                               `sample`: the shape of the model's input
//   count(op, in, out, where)   what a pass costs, by the rules of counts.h
//   weights(op)     shapes of its weights, which are those of torch's modules
//   saved(op)       what is kept for its backward pass
//   split(op)       how tensor parallelism may cut it
//   only_simulated(op)          no runtime of ours trains it
//
// Nothing has a default: what a kind has in common with others it takes from the classes below, by
// name. Symbols in comments: T tokens, n elements of one sample's output. Only layer_rules.cpp
// includes the families.
namespace reckon::family {

using Inputs = std::span<const Shape* const>;
using Result = tl::expected<Shape, ShapeError>;
using Checked = std::optional<ShapeError>;
using A = layer_text::Attributes;
using Kind = layer_text::Kind;

struct Arity {
  std::size_t least, most;
  std::string_view text;
};
inline constexpr std::size_t kManyInputs = 1024;

/// Where a layer stands that is counted.
struct Where {
  bool input_has_gradient = true;  // some layer before it is trained
  bool frozen = false;
};

template <class Op>
struct Rules;

// What kinds have in common.
struct OneInput {
  static constexpr Arity arity{1, 1, "one input"};
};
struct TwoInputs {
  static constexpr Arity arity{2, 2, "two inputs"};
};
struct TwoOrMore {
  static constexpr Arity arity{2, kManyInputs, "two inputs or more"};
};
struct NoInput {
  static constexpr Arity arity{0, 0, "no input"};
};
struct NoAttributes {
  static Checked check(const auto&) { return std::nullopt; }
};
struct SameShape {
  static Result shape(const auto&, Inputs in, const Shape&) { return *in[0]; }
};
struct NoWeights {
  static LayerWeights weights(const auto&) { return {}; }
};
struct SavesNothing {
  static LayerSaved saved(const auto&) { return {}; }
};
struct SavesInputs {
  static LayerSaved saved(const auto&) { return {.inputs = LayerSaved::Inputs::always}; }
};
struct SavesInputsToLearn {
  static LayerSaved saved(const auto&) { return {.inputs = LayerSaved::Inputs::to_learn}; }
};
struct NeedsAllFeatures {
  static SplitRule split(const auto&) { return SplitRule::whole; }
};
struct FeatureByFeature {
  static SplitRule split(const auto&) { return SplitRule::features; }
};
struct Trained {
  static bool only_simulated(const auto&) { return false; }
};
struct OnlySimulated {
  static bool only_simulated(const auto&) { return true; }
};

// No dimension of a real network comes near, and three products of two stay inside 64 bits.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;

struct PositiveSize {
  std::string_view name;
  std::int64_t value;
  std::int64_t least = 1;
};
inline Checked check_sizes(std::initializer_list<PositiveSize> sizes) {
  for (const PositiveSize& s : sizes) {
    if (s.value < s.least || s.value > kLargestSize) {
      return ShapeError{fmt::format("{} is {}", s.name, s.value),
                        fmt::format("it must lie in {}..{}", s.least, kLargestSize)};
    }
  }
  return std::nullopt;
}
inline Checked check_rate(double rate) {  // a probability
  if (rate >= 0 && rate < 1) return std::nullopt;
  return ShapeError{fmt::format("the dropout rate is {}", rate), "it must lie in [0, 1)"};
}

inline tl::unexpected<ShapeError> error(std::string what, std::string hint = {}) {
  return tl::unexpected<ShapeError>(ShapeError{std::move(what), std::move(hint)});
}
inline Result not_taken(std::string_view taken, const Shape& in) {
  return error(fmt::format("takes {}, its input is {}", taken, to_text(in)));
}
inline Result image_expected(const Shape& in) { return not_taken("an image (C, H, W)", in); }
inline Result tokens_expected(const Shape& in) { return not_taken("tokens (T, D)", in); }
inline Result channels_wrong(std::int64_t channels, const Shape& in) {
  return error(fmt::format("is built for {} channels, its input is {}", channels, to_text(in)));
}
inline Result same_if_last_is(const Shape& in, std::int64_t width, std::string_view what) {
  if (!in.empty() && in.back() == width) return in;
  return error(fmt::format("is built for {} {}, its input is {}", width, what, to_text(in)));
}
inline Result all_equal(Inputs in) {
  for (const Shape* shape : in) {
    if (*shape != *in[0]) {
      return error(
          fmt::format("its inputs differ in shape: {} and {}", to_text(*in[0]), to_text(*shape)));
    }
  }
  return *in[0];
}

// [Hoffmann 2022, appendix F]: exponential, sum, division.
constexpr double kSoftmaxFlops = 3;  // an element
constexpr Bytes kStatistic{4};       // fp32, whatever the layers run in
constexpr Bytes kMask{1};            // torch.bool
constexpr Bytes kIndex{8};           // torch.int64

inline double d(std::int64_t x) { return static_cast<double>(x); }
inline double size(const Shape& shape) { return d(elements(shape)); }
/// Rows of (T, D): T; of (D): 1.
inline double rows(const Shape& shape) { return shape.size() == 2 ? d(shape[0]) : 1; }

/// A kernel that reads its inputs once and writes its output once.
inline LayerCount element_wise(Inputs in, const Shape& out, double flops_per_element) {
  LayerCount c;
  for (const Shape* shape : in) c.elements_in += size(*shape);
  c.elements_out = size(out);
  c.forward = Flops{flops_per_element * c.elements_out};
  c.backward = c.forward;
  return c;
}
/// Moves its input: as many elements as come out.
inline LayerCount copy(Inputs in, const Shape& out) { return element_wise(in, out, 0); }
/// Reads and writes what it takes, not all that is there.
inline LayerCount gather(const Shape& out) {
  LayerCount c;
  c.elements_in = c.elements_out = size(out);
  c.backward = Flops{size(out)};
  return c;
}
inline LayerCount product(Inputs in, const Shape& out, WorkKind work, Flops forward,
                          bool input_has_gradient) {
  LayerCount c = element_wise(in, out, 0);
  c.work = work;
  c.forward = c.matrix = forward;
  c.backward = forward * (input_has_gradient ? 2 : 1);
  return c;
}

template <class Op>
LayerOp plain(A& a) {
  a.no_main();
  return Op{};
}

}  // namespace reckon::family
