#include "sim/model/zoo/transformer_check.h"

#include <fmt/format.h>

namespace reckon {
namespace {

constexpr std::int64_t kMostLayers = 10000;

/// Of multi-head latent attention.
void check_latent(const TransformerDimensions& given, const TransformerDimensions& d,
                  Diagnostics& errors) {
  constexpr std::int64_t kWidest = std::int64_t{1} << 24;
  const auto width = [&](std::string_view name, std::int64_t value, std::int64_t least) {
    if (value >= least && value <= kWidest) return;
    errors.push_back(
        {.what = fmt::format("{} of a transformer is {}", name, value),
         .hint = fmt::format("with kv_lora_rank it must lie in {}..{}", least, kWidest)});
  };
  width("q_lora_rank", d.q_lora_rank, 0);
  width("nope_head_width", d.nope_head_width, 1);
  width("rope_head_width", d.rope_head_width, 2);
  width("value_head_width", d.value_head_width, 1);
  const bool other = (given.kv_heads != 0 && given.kv_heads != given.heads) ||
                     given.head_width != 0 || d.rotary_width != 0 || d.window != 0 || d.alibi ||
                     d.positions != 0 || d.qk_norm || d.qkv_bias;
  if (other)
    errors.push_back({.what = "a transformer has kv_lora_rank and another kind of attention",
                      .hint = "leave out kv_heads, head_width, positions, window, alibi, qkv_bias "
                              "and qk_norm"});
}

}  // namespace

Diagnostics check_transformer(const TransformerDimensions& given, const TransformerDimensions& d) {
  Diagnostics errors;
  const auto positive = [&](std::string_view name, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return;
    errors.push_back({.what = fmt::format("{} of a transformer is {}", name, value),
                      .hint = fmt::format("it must lie in 1..{}", most)});
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  positive("layers", d.layers, kMostLayers);
  positive("hidden", d.hidden, kMost);
  positive("heads", d.heads, kMost);
  positive("kv_heads", d.kv_heads, kMost);
  positive("feed_forward", d.feed_forward, 4 * kMost);
  positive("vocabulary", d.vocabulary, kMost);
  positive("sequence_length", d.sequence_length, kMost);
  if (!errors.empty()) return errors;
  if (given.head_width == 0 && d.kv_lora_rank == 0 && d.hidden % d.heads != 0) {
    errors.push_back({.what = fmt::format("{} heads do not divide hidden {}", d.heads, d.hidden),
                      .hint = "give head_width where heads do not share out hidden"});
  } else {
    positive("head_width", d.head_width, kMost);
  }
  if (d.heads % d.kv_heads != 0) {
    errors.push_back(
        {.what = fmt::format("{} key-value heads do not divide {} heads", d.kv_heads, d.heads)});
  }
  if (d.experts > 0) {
    positive("experts", d.experts, kMost);
    positive("experts_per_token", d.experts_per_token, d.experts);
    positive("expert_feed_forward", d.expert_feed_forward, 4 * kMost);
  }
  if (d.dense_layers < 0 || d.dense_layers > (d.experts > 0 ? d.layers : 0))
    errors.push_back({.what = fmt::format("dense_layers of a transformer is {}", d.dense_layers),
                      .hint = d.experts > 0 ? fmt::format("it must lie in 0..{}", d.layers)
                                            : std::string("without experts all layers are dense")});
  if (d.kv_lora_rank > 0) check_latent(given, d, errors);
  if (d.parallel_residual && d.post_norm)
    errors.push_back({.what = "a transformer has parallel_residual and post_norm",
                      .hint = "both parts of a parallel block start from norms of its input"});
  if (d.alibi && d.positions > 0)
    errors.push_back({.what = "a transformer has alibi and a position table",
                      .hint = "give one of alibi and positions"});
  if (d.positions > 0 && d.sequence_length > d.positions) {
    errors.push_back(
        {.what = fmt::format("a sequence of {} tokens is longer than the {} learned positions",
                             d.sequence_length, d.positions),
         .hint = "shorten sequence_length, or give positions as many rows (0: rotary)"});
  }
  return errors;
}

}  // namespace reckon
