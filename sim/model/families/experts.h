#pragma once
#include "sim/model/families/rules.h"

// A mixture of experts: tokens to their experts, the experts, and back.
namespace reckon::family {

struct Routed {
  static constexpr Arity arity{2, 2, "two inputs, the second the scores of the experts"};
};

inline Checked check_experts(std::int64_t experts, std::int64_t top_k) {
  if (auto e = check_sizes({{"experts", experts}, {"top_k", top_k}})) return e;
  if (top_k <= experts) return std::nullopt;
  return ShapeError{fmt::format("sends each token to {} of {} experts", top_k, experts), {}};
}

/// The scores (T, experts) behind the first input; T.
inline tl::expected<std::int64_t, ShapeError> scored_tokens(std::int64_t experts, Inputs in) {
  if (in[0]->size() == 2 && in[1]->size() == 2 && in[1]->back() == experts) return in[1]->front();
  return error(fmt::format("takes (rows, D) and scores (T, {}), its inputs are {} and {}", experts,
                           to_text(*in[0]), to_text(*in[1])));
}

inline tl::expected<std::int64_t, ShapeError> routed_tokens(std::int64_t experts,
                                                            std::int64_t top_k, Inputs in) {
  auto tokens = scored_tokens(experts, in);
  if (tokens && in[0]->front() != *tokens * top_k) {
    return error(fmt::format("takes {} rows for each of {} tokens, its input is {}", top_k, *tokens,
                             to_text(*in[0])),
                 "an ExpertDispatch makes them");
  }
  return tokens;
}

/// Forward: nothing; the gradient of a token is the sum of its rows'.
template <>
struct Rules<ExpertDispatch> : Routed, NoWeights, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "ExpertDispatch";
  static LayerOp read(A& a) {
    return ExpertDispatch{a.main_number(), a.number("top_k", std::nullopt)};
  }
  static constexpr Kind kind{
      {"expert_dispatch", "{expert_dispatch: 8, top_k: 2, from: \"norm, scores\"}"}, read};

  static Checked check(const ExpertDispatch& e) { return check_experts(e.experts, e.top_k); }
  static Result shape(const ExpertDispatch& e, Inputs in, const Shape&) {
    const auto tokens = scored_tokens(e.experts, in);
    if (!tokens) return tl::unexpected<ShapeError>(tokens.error());
    if (in[0]->front() != *tokens)
      return error(fmt::format("takes {} tokens, its input is {}", *tokens, to_text(*in[0])));
    return Shape{*tokens * e.top_k, in[0]->back()};
  }
  static LayerCount count(const ExpertDispatch&, Inputs in, const Shape& out, Where) {
    LayerCount c = gather(out);
    c.backward = Flops{size(out) - size(*in[0])};
    return c;
  }
};

/// Forward: 2 in out a row; there are T top_k rows.
template <>
struct Rules<ExpertLinear> : Routed, SavesInputsToLearn, Trained {
  static constexpr std::string_view name = "ExpertLinear";
  static LayerOp read(A& a) {
    const std::int64_t experts = a.number("experts", std::nullopt);
    const std::int64_t top_k = a.number("top_k", std::nullopt);
    const std::int64_t in = a.number("in", a.features());
    return ExpertLinear{experts, top_k, in, a.main_number(), a.flag("bias", false)};
  }
  static constexpr Kind kind{
      {"expert_linear", "{expert_linear: 14336, experts: 8, top_k: 2, from: \"rows, scores\"}"},
      read};

  static Checked check(const ExpertLinear& e) {
    auto bad = check_experts(e.experts, e.top_k);
    return bad ? bad : check_sizes({{"in", e.in}, {"out", e.out}});
  }
  static Result shape(const ExpertLinear& e, Inputs in, const Shape&) {
    const auto tokens = routed_tokens(e.experts, e.top_k, in);
    if (!tokens) return tl::unexpected<ShapeError>(tokens.error());
    Result result = same_if_last_is(*in[0], e.in, "input features");
    if (result) result->back() = e.out;
    return result;
  }
  static LayerCount count(const ExpertLinear& e, Inputs in, const Shape& out, Where where) {
    return product(in.first(1), out, WorkKind::matmul, Flops{2 * d(e.in) * d(e.out) * rows(out)},
                   where.input_has_gradient);
  }
  static LayerWeights weights(const ExpertLinear& e) {
    return {.weight = {e.experts, e.out, e.in},
            .bias = e.bias ? Shape{e.experts, e.out} : Shape{},
            .parts = e.experts,
            .parts_met = e.top_k};
  }
  static SplitRule split(const ExpertLinear&) { return SplitRule::matrix; }
};

/// Forward: 2 top_k n, and 3 for each score. Keeps weight and index of each row, 4 + 8 bytes.
template <>
struct Rules<ExpertCombine> : Routed, NoWeights, SavesInputs, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "ExpertCombine";
  static LayerOp read(A& a) {
    return ExpertCombine{a.main_number(), a.number("top_k", std::nullopt),
                         a.flag("normalize", true)};
  }
  static constexpr Kind kind{
      {"expert_combine", "{expert_combine: 8, top_k: 2, from: \"rows, scores\"}"}, read};

  static Checked check(const ExpertCombine& e) { return check_experts(e.experts, e.top_k); }
  static Result shape(const ExpertCombine& e, Inputs in, const Shape&) {
    const auto tokens = routed_tokens(e.experts, e.top_k, in);
    if (!tokens) return tl::unexpected<ShapeError>(tokens.error());
    return Shape{*tokens, in[0]->back()};
  }
  static LayerCount count(const ExpertCombine& e, Inputs in, const Shape& out, Where) {
    LayerCount c = element_wise(in, out, 2 * d(e.top_k));
    c.forward += Flops{kSoftmaxFlops * size(*in[1])};
    c.backward = c.forward;
    c.saved_fixed = (kStatistic + kIndex) * d(e.top_k) * rows(out);
    return c;
  }
};

}  // namespace reckon::family
