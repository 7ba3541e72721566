#pragma once
#include <algorithm>
#include <array>

#include "sim/model/families/rules.h"

// State-space layers and linear attention: a state of fixed size in place of attention's keys, and
// the short convolution before it. All are simulated only. N features of a state, P of a head, G
// groups, H heads, Q tokens of a chunk.
namespace reckon::family {

/// Forward: 2 kernel (in/groups) n; of one channel a group it is bound by memory.
template <>
struct Rules<SequenceConv> : OneInput, SavesInputsToLearn, OnlySimulated {
  static constexpr std::string_view name = "SequenceConv";
  static LayerOp read(A& a) {
    SequenceConv op{.in = a.number("in", a.features()), .out = a.main_number()};
    op.kernel = a.number("kernel", 4);
    op.stride = a.number("stride", 1);
    op.groups = a.number("groups", 1);
    op.bias = a.flag("bias", true);
    return op;
  }
  static constexpr Kind kind{{"sequence_conv", "{sequence_conv: 5120, kernel: 4, groups: 5120}"},
                             read};

  static bool depthwise(const SequenceConv& c) { return c.groups > 1 && c.groups == c.in; }
  static Checked check(const SequenceConv& c) {
    if (auto e = check_sizes({{"in", c.in},
                              {"out", c.out},
                              {"kernel", c.kernel},
                              {"stride", c.stride},
                              {"groups", c.groups}}))
      return e;
    if (c.in % c.groups == 0 && c.out % c.groups == 0) return std::nullopt;
    return ShapeError{fmt::format("{} groups do not divide {} input and {} output features",
                                  c.groups, c.in, c.out),
                      {}};
  }
  static Result shape(const SequenceConv& c, Inputs in, const Shape&) {
    if (in[0]->size() != 2) return tokens_expected(*in[0]);
    Result result = same_if_last_is(*in[0], c.in, "input features");
    if (result) *result = {(in[0]->front() + c.stride - 1) / c.stride, c.out};
    return result;
  }
  static LayerCount count(const SequenceConv& c, Inputs in, const Shape& out, Where where) {
    const double per_output = 2 * d(c.kernel) * d(c.in / c.groups);
    LayerCount result = product(in, out, WorkKind::convolution, Flops{per_output * size(out)},
                                where.input_has_gradient);
    result.depthwise = depthwise(c);
    return result;
  }
  static LayerWeights weights(const SequenceConv& c) {
    return {.weight = {c.out, c.in / c.groups, c.kernel}, .bias = c.bias ? Shape{c.out} : Shape{}};
  }
  static SplitRule split(const SequenceConv& c) {
    return depthwise(c) ? SplitRule::features : SplitRule::whole;
  }
};

/// x of each of `width` features, B and C of (T, parts), time steps of (T, steps).
struct StateInputs {
  static constexpr Arity arity{4, 4, "four inputs: x, time steps, B and C"};
  static Result matching(Inputs in, std::int64_t width, std::int64_t steps, std::int64_t parts) {
    const std::array<std::int64_t, 4> widths{width, steps, parts, parts};
    const std::array<std::string_view, 4> names{"x", "time steps", "B", "C"};
    for (std::size_t i = 0; i < in.size(); ++i) {
      const Shape wanted{in[0]->front(), widths[i]};
      if (*in[i] != wanted)
        return error(fmt::format("takes {} of {}, its input is {}", names[i], to_text(wanted),
                                 to_text(*in[i])));
    }
    return *in[0];
  }
};

/// Forward: 9 for each token, feature and number of its state [state-spaces/mamba, issue 110:
/// FLOPs of selective_scan_ref]. One fused kernel that never writes the states and computes them
/// again backward [Gu 2023, section 3.3.2]: bound by memory, it keeps its inputs.
template <>
struct Rules<SelectiveScan> : StateInputs, SavesInputs, OnlySimulated {
  static constexpr std::string_view name = "SelectiveScan";
  static LayerOp read(A& a) {
    return SelectiveScan{a.number("width", a.features()), a.main_number()};
  }
  static constexpr Kind kind{{"selective_scan", "{selective_scan: 16, from: \"x, steps, B, C\"}"},
                             read};

  static Checked check(const SelectiveScan& s) {
    return check_sizes({{"width", s.width}, {"state", s.state}});
  }
  static Result shape(const SelectiveScan& s, Inputs in, const Shape&) {
    return matching(in, s.width, s.width, s.state);
  }
  static LayerCount count(const SelectiveScan& s, Inputs in, const Shape& out, Where) {
    constexpr double kScanFlops = 9;
    return element_wise(in, out, kScanFlops * d(s.state));
  }
  static LayerWeights weights(const SelectiveScan& s) {
    return {.weight = {s.width, s.state}, .bias = {s.width}};
  }
  static SplitRule split(const SelectiveScan&) { return SplitRule::whole; }
};

/// Forward, for each token: 2 Q N G scores of C and B within the chunk, 2 Q P H of them with x, 2 N
/// P H into the chunk's state and 2 N P H out of it [Dao 2024, listing 1]; 3 Q H for the decays.
/// Full Q x Q, as attention. The chunks' states are computed again backward.
template <>
struct Rules<StateSpace> : StateInputs, SavesInputs, OnlySimulated {
  static constexpr std::string_view name = "StateSpace";
  static LayerOp read(A& a) {
    StateSpace op;
    op.heads = a.main_number();
    op.head_width = a.number("head_width", op.heads > 0 ? a.features() / op.heads : 1);
    op.state = a.number("state", 128);
    op.groups = a.number("groups", 1);
    op.chunk = a.number("chunk", 256);
    return op;
  }
  static constexpr Kind kind{
      {"state_space", "{state_space: 80, state: 128, groups: 1, from: \"x, steps, B, C\"}"}, read};

  static Checked check(const StateSpace& s) {
    if (auto e = check_sizes({{"heads", s.heads},
                              {"head_width", s.head_width},
                              {"state", s.state},
                              {"groups", s.groups},
                              {"chunk", s.chunk}}))
      return e;
    if (s.heads % s.groups == 0) return std::nullopt;
    return ShapeError{fmt::format("{} groups do not divide {} heads", s.groups, s.heads), {}};
  }
  static Result shape(const StateSpace& s, Inputs in, const Shape&) {
    return matching(in, s.heads * s.head_width, s.heads, s.groups * s.state);
  }
  static LayerCount count(const StateSpace& s, Inputs in, const Shape& out, Where) {
    const double chunk = std::min(d(s.chunk), rows(out)), inner = d(s.heads) * d(s.head_width);
    const double products =
        chunk * d(s.state) * d(s.groups) + chunk * inner + 2 * d(s.state) * inner;
    LayerCount c = product(in, out, WorkKind::attention, Flops{2 * products * rows(out)}, true);
    const Flops decays{kSoftmaxFlops * chunk * d(s.heads) * rows(out)};
    c.forward += decays;
    c.backward += decays;
    return c;
  }
  static LayerWeights weights(const StateSpace& s) { return {.weight = {3, s.heads}, .bias = {}}; }
  static SplitRule split(const StateSpace&) { return SplitRule::first_input; }
};

/// Forward, for each token and head, of K and V features and chunks of C: 6 C K for the scores of
/// keys with keys, of queries with keys, and the keys corrected by them; 4 C V for the values
/// corrected and read; 2/3 C C to invert the chunk's triangle; 6 K V into the state, out of it, and
/// its part of the correction [Yang 2024, section 3.3; transformers modeling_qwen3_next.py,
/// torch_chunk_gated_delta_rule].
template <>
struct Rules<DeltaRule> : SavesInputs, OnlySimulated {
  static constexpr std::string_view name = "DeltaRule";
  static constexpr Arity arity{5, 5, "five inputs: q, k, v, strength and decay"};
  static LayerOp read(A& a) {
    DeltaRule op;
    op.heads = a.main_number();
    op.key_heads = a.number("key_heads", op.heads);
    op.key_width = a.number("key_width", op.key_heads > 0 ? a.features() / op.key_heads : 1);
    op.value_width = a.number("value_width", op.key_width);
    op.chunk = a.number("chunk", 64);
    return op;
  }
  static constexpr Kind kind{
      {"delta_rule", "{delta_rule: 32, key_heads: 16, from: \"q, k, v, strength, decay\"}"}, read};

  static Checked check(const DeltaRule& r) {
    if (auto e = check_sizes({{"heads", r.heads},
                              {"key_heads", r.key_heads},
                              {"key_width", r.key_width},
                              {"value_width", r.value_width},
                              {"chunk", r.chunk}}))
      return e;
    if (r.heads % r.key_heads == 0) return std::nullopt;
    return ShapeError{fmt::format("{} heads of keys do not divide {} heads", r.key_heads, r.heads),
                      {}};
  }
  static Result shape(const DeltaRule& r, Inputs in, const Shape&) {
    const std::int64_t keys = r.key_heads * r.key_width, values = r.heads * r.value_width;
    const std::array<std::int64_t, 5> widths{keys, keys, values, r.heads, r.heads};
    for (std::size_t i = 0; i < in.size(); ++i) {
      const Shape wanted{in[0]->front(), widths[i]};
      if (*in[i] != wanted)
        return error(fmt::format("takes {} as its input {}, it is {}", to_text(wanted), i + 1,
                                 to_text(*in[i])));
    }
    return *in[2];
  }
  static LayerCount count(const DeltaRule& r, Inputs in, const Shape& out, Where) {
    const double c = std::min(d(r.chunk), rows(out)), k = d(r.key_width), v = d(r.value_width);
    const double each = 6 * c * k + 4 * c * v + 2. / 3 * c * c + 6 * k * v;
    return product(in, out, WorkKind::attention, Flops{each * d(r.heads) * rows(out)}, true);
  }
  static LayerWeights weights(const DeltaRule& r) { return {.weight = {2, r.heads}, .bias = {}}; }
  static SplitRule split(const DeltaRule&) { return SplitRule::whole; }
};

}  // namespace reckon::family
