#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/model/families/rules.h"

// Attention, and what puts its keys together.
namespace reckon::family {

/// w head width, u width of a head's values (w, but of latent attention), h heads. Forward: 2 T T w
/// h scores, 2 T T u h values [Chowdhery 2022, app. B], 3 T T h softmax [Hoffmann 2022, app. F];
/// over S others T S, with a window T min(T, window); distances: 2 T S w h. Backward: 2x the
/// products (each has two operands), 1x the softmax; a fused kernel's second forward is no model
/// FLOP [Chowdhery 2022]. One fused kernel that never writes the scores [Dao 2022]; it keeps the
/// softmax's statistic, 4 bytes a token and head. What is added to the scores: h T S; a soft cap: 3
/// h T S, as a softmax. The full T x T counts for a causal model too,
/// although fused kernels skip half of it: so do the published MFU figures.
template <>
struct Rules<Attention> {
  static constexpr std::string_view name = "Attention";
  static LayerOp read(A& a) {
    Attention op;
    op.heads = a.main_number();
    op.kv_heads = a.number("kv_heads", op.heads);
    // One input holds q, k and v side by side, three hold one each.
    const std::int64_t parts = a.inputs() == 1 ? op.heads + 2 * op.kv_heads : op.heads;
    const bool divides = parts > 0 && a.features() % parts == 0;
    op.head_width = a.number(
        "head_width", divides ? std::max<std::int64_t>(1, a.features() / parts) : std::int64_t{1});
    op.causal = a.flag("causal", true);
    op.dropout = a.real("dropout", 0);
    op.window = a.number("window", 0);
    op.value_width = a.number("value_width", 0);
    op.alibi = a.flag("alibi", false);
    op.sinks = a.flag("sinks", false);
    op.softcap = a.real("softcap", 0);
    return op;
  }
  static constexpr Kind kind{
      {"attention", "{attention: 32, kv_heads: 8, head_width: 128, from: \"q, k, v\"}"}, read};
  static constexpr Arity arity{1, 4, "three inputs (q, k, v) or one of all"};

  static Checked check(const Attention& a) {
    if (auto e = check_sizes({{"heads", a.heads},
                              {"kv_heads", a.kv_heads},
                              {"head_width", a.head_width},
                              {"window", a.window, 0},
                              {"value_width", a.value_width, 0}}))
      return e;
    if (a.heads % a.kv_heads != 0) {
      return ShapeError{
          fmt::format("{} key-value heads do not divide {} heads", a.kv_heads, a.heads), {}};
    }
    if (a.softcap < 0 || !std::isfinite(a.softcap))
      return ShapeError{fmt::format("the soft cap is {}", a.softcap), "0 for none"};
    return check_rate(a.dropout);
  }
  /// A fourth input of what is added to the scores, not of keys of distances.
  static bool has_bias(Inputs in) { return in.size() == 4 && in[3]->size() == 3; }
  static Result shape(const Attention& a, Inputs in, const Shape&) {
    if (in.size() == 2) return error(fmt::format("takes {}, it has 2", arity.text));
    const std::int64_t q = a.heads * a.head_width, kv = a.kv_heads * a.head_width;
    const std::int64_t values = a.kv_heads * a.values();
    const std::int64_t tokens = in[0]->front();
    const bool fused = in.size() == 1;
    const std::array<std::string_view, 4> names{fused ? "q, k and v" : "q", "k", "v", "distances"};
    const std::array<std::int64_t, 4> widths{fused ? q + kv + values : q, kv, values, kv};
    const std::int64_t seen = fused || a.causal ? tokens : in[1]->front();
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool bias = i == 3 && has_bias(in);
      const Shape wanted =
          bias ? Shape{a.heads, tokens, seen} : Shape{i == 0 ? tokens : seen, widths[i]};
      if (*in[i] != wanted) {
        return error(fmt::format("takes {} of {}, its input is {}", names[i], to_text(wanted),
                                 to_text(*in[i])));
      }
    }
    return Shape{tokens, a.heads * a.values()};
  }
  static LayerCount count(const Attention& a, Inputs in, const Shape& out, Where) {
    const double tokens = d(out[0]);
    const double others = in.size() >= 3 ? d(in[1]->front()) : tokens;
    const double scores =
        tokens * (a.window > 0 ? std::min(d(a.window), others) : others) * d(a.heads);
    const bool bias = has_bias(in);
    const double keys = in.size() == 4 && !bias ? 2 : 1;  // the second: of the distances
    const double products = scores * (keys * d(a.head_width) + d(a.values()));
    LayerCount c = product(in, out, WorkKind::attention, Flops{2 * products}, true);
    const double each =
        kSoftmaxFlops * (a.softcap > 0 ? 2 : 1) + (bias ? 1 : 0);  // besides the products
    c.forward += Flops{each * scores};
    c.backward += Flops{each * scores};
    c.saved_fixed = kStatistic * tokens * d(a.heads);
    return c;
  }
  static LayerSaved saved(const Attention&) {
    return {.inputs = LayerSaved::Inputs::always, .output = true};
  }
  static SplitRule split(const Attention&) { return SplitRule::heads; }
  static LayerWeights weights(const Attention& a) {
    return {.weight = a.sinks ? Shape{a.heads} : Shape{}, .bias = {}};
  }
  static bool only_simulated(const Attention& a) {
    return a.values() != a.head_width || a.sinks || a.softcap > 0;
  }
};

/// Forward: a look-up for each score of each head; backward: their sums by bucket.
template <>
struct Rules<RelativeBias> : TwoInputs, SavesNothing, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "RelativeBias";
  static LayerOp read(A& a) { return RelativeBias{a.main_number(), a.number("buckets", 32)}; }
  static constexpr Kind kind{{"relative_bias", "{relative_bias: 8, buckets: 32, from: \"q, k\"}"},
                             read};

  static Checked check(const RelativeBias& r) {
    return check_sizes({{"heads", r.heads}, {"buckets", r.buckets}});
  }
  static Result shape(const RelativeBias& r, Inputs in, const Shape&) {
    for (const Shape* tokens : in)
      if (tokens->size() != 2) return tokens_expected(*tokens);
    return Shape{r.heads, in[0]->front(), in[1]->front()};
  }
  static LayerCount count(const RelativeBias&, Inputs, const Shape& out, Where) {
    return gather(out);
  }
  static LayerWeights weights(const RelativeBias& r) {
    return {.weight = {r.buckets, r.heads}, .bias = {}};
  }
};

template <>
struct Rules<ConcatToHeads> : NoWeights, SavesNothing, OnlySimulated {
  static constexpr std::string_view name = "ConcatToHeads";
  static LayerOp read(A& a) { return ConcatToHeads{a.main_number()}; }
  static constexpr Kind kind{{"concat_to_heads", "{concat_to_heads: 128, from: \"k, rotary\"}"},
                             read};
  static constexpr Arity arity{2, 2, "two inputs, the second shared by the heads"};

  static Checked check(const ConcatToHeads& c) { return check_sizes({{"heads", c.heads}}); }
  static Result shape(const ConcatToHeads& c, Inputs in, const Shape&) {
    const Shape &own = *in[0], &shared = *in[1];
    if (own.size() != 2 || shared.size() != 2 || own[0] != shared[0] || own[1] % c.heads != 0) {
      return error(fmt::format("takes (T, {} w) and (T, D), its inputs are {} and {}", c.heads,
                               to_text(own), to_text(shared)));
    }
    return Shape{own[0], own[1] + c.heads * shared[1]};
  }
  static LayerCount count(const ConcatToHeads&, Inputs in, const Shape& out, Where) {
    return copy(in, out);
  }
  static SplitRule split(const ConcatToHeads&) { return SplitRule::first_input; }
};

}  // namespace reckon::family
