#pragma once
#include "sim/model/families/rules.h"

// Norms. Forward: 5 n [fvcore jit_handles.py, DeepSpeed flops profiler], RmsNorm 4 n: square, sum,
// two products. Those over more than a token read their input twice, statistics first.
namespace reckon::family {

constexpr double kNormFlops = 5;     // an element
constexpr double kRmsNormFlops = 4;  // an element

/// Frozen it has its statistics already, and reads its input once.
template <>
struct Rules<BatchNorm> : OneInput, SavesInputs, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "BatchNorm";
  static LayerOp read(A& a) {
    a.no_main();
    return BatchNorm{a.number("channels", a.channels())};
  }
  static constexpr Kind kind{{"batch_norm", "{batch_norm: true}"}, read};

  static Checked check(const BatchNorm& n) { return check_sizes({{"channels", n.channels}}); }
  static Result shape(const BatchNorm& n, Inputs in, const Shape&) {
    if (in[0]->front() == n.channels) return *in[0];
    return channels_wrong(n.channels, *in[0]);
  }
  static LayerCount count(const BatchNorm&, Inputs in, const Shape& out, Where where) {
    LayerCount c = element_wise(in, out, kNormFlops);
    if (!where.frozen) c.elements_in *= 2;
    return c;
  }
  static LayerWeights weights(const BatchNorm& n) {
    return {.weight = {n.channels}, .bias = {n.channels}};
  }
};

/// Keeps mean and deviation: 8 bytes a token.
template <>
struct Rules<LayerNorm> : OneInput, SavesInputs, NeedsAllFeatures {
  static constexpr std::string_view name = "LayerNorm";
  static LayerOp read(A& a) {
    a.no_main();
    return LayerNorm{a.number("width", a.features()), a.flag("bias", true), a.flag("affine", true)};
  }
  static constexpr Kind kind{{"layer_norm", "{layer_norm: true, bias: false}"}, read};

  static Checked check(const LayerNorm& n) { return check_sizes({{"width", n.width}}); }
  static Result shape(const LayerNorm& n, Inputs in, const Shape&) {
    return same_if_last_is(*in[0], n.width, "features");
  }
  static LayerCount count(const LayerNorm&, Inputs in, const Shape& out, Where) {
    LayerCount c = element_wise(in, out, kNormFlops);
    c.saved_fixed = kStatistic * 2 * rows(out);
    return c;
  }
  static LayerWeights weights(const LayerNorm& n) {
    if (!n.affine) return {};
    return {.weight = {n.width}, .bias = n.bias ? Shape{n.width} : Shape{}};
  }
  static bool only_simulated(const LayerNorm& n) { return !n.affine; }
};

/// Keeps the deviation: 4 bytes a token (and head).
template <>
struct Rules<RmsNorm> : OneInput, SavesInputs {
  static constexpr std::string_view name = "RmsNorm";
  static LayerOp read(A& a) {
    a.no_main();
    const std::int64_t heads = a.number("heads", 1);
    return RmsNorm{a.number("width", heads > 0 ? a.features() / heads : 1), heads,
                   a.flag("shared", true), a.flag("affine", true)};
  }
  static constexpr Kind kind{{"rms_norm", "{rms_norm: true}"}, read};

  static Checked check(const RmsNorm& n) {
    return check_sizes({{"width", n.width}, {"heads", n.heads}});
  }
  static Result shape(const RmsNorm& n, Inputs in, const Shape&) {
    return same_if_last_is(*in[0], n.width * n.heads, "features");
  }
  static LayerCount count(const RmsNorm& n, Inputs in, const Shape& out, Where) {
    LayerCount c = element_wise(in, out, kRmsNormFlops);
    c.saved_fixed = kStatistic * rows(out) * d(n.heads);
    return c;
  }
  static LayerWeights weights(const RmsNorm& n) {
    if (!n.affine) return {};
    return {.weight = {n.shared ? n.width : n.width * n.heads}, .bias = {}};
  }
  static bool only_simulated(const RmsNorm& n) { return !n.affine || !n.shared; }
  static SplitRule split(const RmsNorm& n) {
    return n.heads > 1 ? SplitRule::features : SplitRule::whole;
  }
};

/// Keeps mean and deviation: 8 bytes a group.
template <>
struct Rules<GroupNorm> : OneInput, SavesInputs, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "GroupNorm";
  static LayerOp read(A& a) {
    return GroupNorm{a.number("channels", a.channels()), a.main_number()};
  }
  static constexpr Kind kind{{"group_norm", "{group_norm: 32}"}, read};

  static Checked check(const GroupNorm& n) {
    if (auto e = check_sizes({{"channels", n.channels}, {"groups", n.groups}})) return e;
    if (n.channels % n.groups == 0) return std::nullopt;
    return ShapeError{fmt::format("{} groups do not divide {} channels", n.groups, n.channels), {}};
  }
  static Result shape(const GroupNorm& n, Inputs in, const Shape&) {
    if (in[0]->front() != n.channels) return channels_wrong(n.channels, *in[0]);
    return *in[0];
  }
  static LayerCount count(const GroupNorm& n, Inputs in, const Shape& out, Where) {
    LayerCount c = element_wise(in, out, kNormFlops);
    c.elements_in *= 2;
    c.saved_fixed = kStatistic * 2 * d(n.groups);
    return c;
  }
  static LayerWeights weights(const GroupNorm& n) {
    return {.weight = {n.channels}, .bias = {n.channels}};
  }
};

}  // namespace reckon::family
