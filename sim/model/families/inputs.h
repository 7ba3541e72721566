#pragma once
#include "sim/model/families/rules.h"

// Samples as they come, and what is taken of them.
namespace reckon::family {

template <>
struct Rules<InputLayer>
    : NoInput, NoAttributes, NoWeights, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "InputLayer";
  static LayerOp read(A&) { return InputLayer{}; }
  static constexpr Kind kind{{"input", "{input: 3x224x224}"}, read};

  static Result shape(const InputLayer&, Inputs, const Shape& sample) { return sample; }
  static LayerCount count(const InputLayer&, Inputs, const Shape&, Where) { return {}; }
};

template <>
struct Rules<ExtraInput> : NoInput, NoWeights, SavesNothing, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "ExtraInput";
  static LayerOp read(A& a) { return ExtraInput{a.main_number(), a.number("width", 0)}; }
  static constexpr Kind kind{{"extra_input", "{extra_input: 77, width: 1024}"}, read};

  static Checked check(const ExtraInput& x) {
    return check_sizes({{"rows", x.rows}, {"width", x.width, 0}});
  }
  static Result shape(const ExtraInput& x, Inputs, const Shape&) {
    return x.width == 0 ? Shape{x.rows} : Shape{x.rows, x.width};
  }
  static LayerCount count(const ExtraInput&, Inputs, const Shape&, Where) { return {}; }
};

/// Forward: nothing; backward: n additions (scatter).
template <>
struct Rules<SelectTokens> : OneInput, NoWeights, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "SelectTokens";
  static LayerOp read(A& a) { return SelectTokens{a.main_number(), a.flag("masked", false)}; }
  static constexpr Kind kind{{"select_tokens", "{select_tokens: 1}"}, read};

  static Checked check(const SelectTokens& s) { return check_sizes({{"count", s.count}}); }
  static Result shape(const SelectTokens& s, Inputs in, const Shape&) {
    if (in[0]->size() != 2) return tokens_expected(*in[0]);
    if (s.count > in[0]->front()) {
      return error(fmt::format("selects {} tokens, its input is {}", s.count, to_text(*in[0])));
    }
    return Shape{s.count, in[0]->back()};
  }
  static LayerCount count(const SelectTokens&, Inputs, const Shape& out, Where) {
    return gather(out);
  }
};

/// As SelectTokens.
template <>
struct Rules<SelectFeatures> : OneInput, NoWeights, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "SelectFeatures";
  static LayerOp read(A& a) { return SelectFeatures{a.number("first", 0), a.main_number()}; }
  static constexpr Kind kind{{"select_features", "{select_features: 13, first: 0}"}, read};

  static Checked check(const SelectFeatures& s) {
    return check_sizes({{"first", s.first, 0}, {"count", s.count}});
  }
  static Result shape(const SelectFeatures& s, Inputs in, const Shape&) {
    if (in[0]->size() != 1) return not_taken("a record (n)", *in[0]);
    if (s.first + s.count > in[0]->front()) {
      return error(fmt::format("selects the fields {}..{} of {}", s.first, s.first + s.count - 1,
                               in[0]->front()),
                   "fields count from 0");
    }
    return Shape{s.count};
  }
  static LayerCount count(const SelectFeatures&, Inputs, const Shape& out, Where) {
    return gather(out);
  }
};

}  // namespace reckon::family
