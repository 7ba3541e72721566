#include <fmt/format.h>

#include <cmath>

#include "exchange/huggingface/family.h"

// Decoders whose blocks differ from each other or from make_transformer's.
namespace reckon::huggingface {
namespace {

FeedForwardPart gated(std::int64_t width, ActivationKind activation, bool bias = false) {
  return {width, FeedForwardKind::gated, activation, bias};
}

LanguageNetwork decoder_of(const Sizes& s, bool tied) {
  LanguageNetwork n;
  n.stack.hidden = s.hidden;
  n.vocabulary = s.vocabulary;
  n.tied_output = tied;
  return n;
}

/// The blocks that `make` gives for each number.
template <class Make>
void fill(Stack& stack, std::int64_t layers, Make make) {
  for (std::int64_t i = 0; i < layers; ++i) stack.blocks.push_back(make(i));
}

/// modeling_gemma.py: embeddings times sqrt(hidden), GeGLU.
LanguageNetwork gemma(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = decoder_of(s, c.flag("tie_word_embeddings", true));
  n.embedding_scale = std::sqrt(static_cast<double>(s.hidden));
  const auto activation = c.activation(
      c.present("hidden_activation") ? "hidden_activation" : "hidden_act", "gelu_pytorch_tanh");
  AttentionPart a = attention_of(s, rope_theta(c, 10000));
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = c.flag("attention_bias", false);
  fill(n.stack, s.layers,
       [&](std::int64_t) { return block_of(a, gated(s.feed_forward, activation)); });
  return n;
}

/// modeling_gemma2.py: every other layer sees a window, norms before and behind each part.
LanguageNetwork gemma2(ConfigJson& c) {
  LanguageNetwork n = gemma(c);
  const auto layers = static_cast<std::int64_t>(n.stack.blocks.size());
  const std::int64_t window = c.number("sliding_window", 4096);
  const auto types = layer_types(c, "layer_types", layers, {"full_attention", "sliding_attention"});
  n.logits_softcap = c.real("final_logit_softcapping", 0);
  const double cap = c.real("attn_logit_softcapping", 0);
  for (std::size_t i = 0; i < n.stack.blocks.size(); ++i) {
    auto& a = std::get<AttentionPart>(n.stack.blocks[i].parts[0].op);
    const bool slides = types.empty() ? i % 2 == 0 : types[i] == "sliding_attention";
    if (slides) a.window = window;
    a.softcap = cap;
    for (Part& part : n.stack.blocks[i].parts) part.norm = NormPlace::both;
  }
  return n;
}

/// modeling_gpt_oss.py: sinks, biases, experts with biases, every other layer sees a window.
LanguageNetwork gpt_oss(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = decoder_of(s, c.flag("tie_word_embeddings", false));
  const auto types =
      layer_types(c, "layer_types", s.layers, {"full_attention", "sliding_attention"});
  const std::int64_t window = c.number("sliding_window", 128);
  AttentionPart a = attention_of(s, rope_theta(c, 150000));
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = c.flag("attention_bias", true);
  a.sinks = true;
  ExpertsPart e;
  e.experts = c.number("num_local_experts", std::nullopt);
  e.per_token =
      c.number(c.present("num_experts_per_tok") ? "num_experts_per_tok" : "experts_per_token", 4);
  e.expert = gated(s.feed_forward, c.activation("hidden_act", "silu"), true);
  e.router_bias = true;
  fill(n.stack, s.layers, [&](std::int64_t i) {
    AttentionPart own = a;
    const auto at = static_cast<std::size_t>(i);
    if (types.empty() ? i % 2 == 0 : types[at] == "sliding_attention") own.window = window;
    return block_of(own, e);
  });
  return n;
}

/// modeling_granite.py: Llama's, with numbers that scale embeddings, residuals and logits.
LanguageNetwork granite(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = decoder_of(s, c.flag("tie_word_embeddings", false));
  n.embedding_scale = c.real("embedding_multiplier", 1);
  n.logits_scale = 1 / std::max(1e-9, c.real("logits_scaling", 1));
  const double residual = c.real("residual_multiplier", 1);
  AttentionPart a = attention_of(s, rope_theta(c, 10000));
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = c.flag("attention_bias", false);
  const FeedForwardPart f =
      gated(s.feed_forward, c.activation("hidden_act", "silu"), c.flag("mlp_bias", false));
  fill(n.stack, s.layers,
       [&](std::int64_t) { return block_of(a, f, NormPlace::before, residual); });
  return n;
}

/// modeling_olmo2.py: norms behind each part, and of all queries and keys.
LanguageNetwork olmo2(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = decoder_of(s, c.flag("tie_word_embeddings", false));
  AttentionPart a = attention_of(s, rope_theta(c, 10000));
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = c.flag("attention_bias", false);
  a.norm = QueryKeyNorm::all;
  const FeedForwardPart f = gated(s.feed_forward, c.activation("hidden_act", "silu"));
  fill(n.stack, s.layers, [&](std::int64_t) { return block_of(a, f, NormPlace::behind); });
  return n;
}

/// modeling_phi.py (Phi-1 and 2): attention and feed-forward side by side, biases, layer norms.
LanguageNetwork phi(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = decoder_of(s, c.flag("tie_word_embeddings", false));
  n.stack.norm = NormKind::layer;
  n.output_bias = true;
  refuse_flag(c, "qk_layernorm", false, "layer norms of queries and keys are not covered");
  AttentionPart a = attention_of(s, rope_theta(c, 10000));
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = true;
  const double share = c.real("partial_rotary_factor", 0.5);
  a.rotary->width = static_cast<std::int64_t>(static_cast<double>(s.head_width) * share) / 2 * 2;
  FeedForwardPart f{s.feed_forward, FeedForwardKind::plain, c.activation("hidden_act", "gelu_new"),
                    true};
  fill(n.stack, s.layers, [&](std::int64_t) {
    Block b = block_of(a, f);
    b.parallel = true;
    return b;
  });
  return n;
}

/// modeling_phimoe.py (Phi-3.5-MoE): layer norms, biases in attention and of the output.
LanguageNetwork phimoe(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = decoder_of(s, c.flag("tie_word_embeddings", false));
  n.stack.norm = NormKind::layer;
  n.output_bias = c.flag("lm_head_bias", false);
  AttentionPart a = attention_of(s, rope_theta(c, 1e6));
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = c.flag("attention_bias", false);
  ExpertsPart e;
  e.experts = c.number("num_local_experts", std::nullopt);
  e.per_token = c.number("num_experts_per_tok", std::nullopt);
  e.expert = gated(s.feed_forward, c.activation("hidden_act", "silu"));
  fill(n.stack, s.layers, [&](std::int64_t) { return block_of(a, e); });
  return n;
}

template <LanguageNetwork (*read)(ConfigJson&)>
void decoder(ConfigJson& c, HuggingFaceModel& model) {
  model.dimensions = read(c);
  take_longest(c, model, std::nullopt);
}

constexpr std::array kDecoders{
    Family{"gemma2", "Gemma2", decoder<gemma2>},
    Family{"gemma3_text", "Gemma3ForCausalLM", decoder<read_gemma3_text>},
    Family{"gemma", "Gemma", decoder<gemma>},
    Family{"gpt_oss", "GptOss", decoder<gpt_oss>},
    Family{"granite", "Granite", decoder<granite>},
    Family{"llama4_text", "Llama4ForCausalLM", decoder<read_llama4_text>},
    Family{"olmo2", "Olmo2", decoder<olmo2>},
    Family{"phimoe", "PhiMoE", decoder<phimoe>},
    Family{"phi", "Phi", decoder<phi>}};

}  // namespace

std::span<const Family> decoder_families() { return kDecoders; }

/// modeling_gemma3.py: one layer in six sees all, norms of queries and keys.
LanguageNetwork read_gemma3_text(ConfigJson& c) {
  const Sizes s = read_sizes(c, {26, 2304, 8, 9216, 262208});
  Sizes own = s;
  if (!c.present("head_dim")) own.head_width = 256;
  if (!c.present("num_key_value_heads")) own.kv_heads = 4;
  LanguageNetwork n = decoder_of(own, c.flag("tie_word_embeddings", true));
  n.embedding_scale = std::sqrt(static_cast<double>(own.hidden));
  n.logits_softcap = c.real("final_logit_softcapping", 0);
  const auto types =
      layer_types(c, "layer_types", own.layers, {"full_attention", "sliding_attention"});
  const std::int64_t window = c.number("sliding_window", 4096);
  const std::int64_t pattern = c.number("sliding_window_pattern", 6);
  AttentionPart a = attention_of(own, rope_theta(c, 1e6));
  a.norm = QueryKeyNorm::heads;
  a.softcap = c.real("attn_logit_softcapping", 0);
  const FeedForwardPart f =
      gated(own.feed_forward, c.activation("hidden_activation", "gelu_pytorch_tanh"));
  fill(n.stack, own.layers, [&](std::int64_t i) {
    AttentionPart layer = a;
    const bool slides = types.empty() ? (i + 1) % pattern != 0
                                      : types[static_cast<std::size_t>(i)] == "sliding_attention";
    if (slides) layer.window = window;
    return block_of(layer, f, NormPlace::both);
  });
  return n;
}

/// modeling_llama4.py: three layers of four rotate and see chunks, every n-th has experts.
LanguageNetwork read_llama4_text(ConfigJson& c) {
  const Sizes s = read_sizes(c, {48, 5120, 40, 8192, 202048});
  Sizes own = s;
  if (!c.present("head_dim")) own.head_width = 128;
  if (!c.present("num_key_value_heads")) own.kv_heads = 8;
  LanguageNetwork n = decoder_of(own, c.flag("tie_word_embeddings", false));
  const std::int64_t dense = c.number("intermediate_size_mlp", 16384);
  const std::int64_t each = c.number("interleave_moe_layer_step", 1);
  const std::vector<std::int64_t> listed = c.numbers("moe_layers");
  const std::vector<std::int64_t> rotates = c.numbers("no_rope_layers");
  const std::int64_t unrotated_each = c.number("no_rope_layer_interval", 4);
  const std::int64_t chunk = c.number("attention_chunk_size", 8192);
  const bool norms = c.flag("use_qk_norm", true);
  const auto activation = c.activation("hidden_act", "silu");
  ExpertsPart e;
  e.experts = c.number("num_local_experts", 16);
  e.per_token = c.number("num_experts_per_tok", 1);
  e.expert = gated(own.feed_forward, activation);
  e.shared = e.expert;
  e.normalized = false;
  AttentionPart a = attention_of(own, rope_theta(c, 500000));
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = c.flag("attention_bias", false);
  fill(n.stack, own.layers, [&](std::int64_t i) {
    AttentionPart layer = a;
    const bool rotated = static_cast<std::int64_t>(rotates.size()) == own.layers
                             ? rotates[static_cast<std::size_t>(i)] != 0
                             : (i + 1) % unrotated_each != 0;
    if (rotated) {
      layer.window = chunk;
      layer.norm = norms ? QueryKeyNorm::heads_without_weights : QueryKeyNorm::none;
    } else {
      layer.rotary = std::nullopt;
    }
    const bool experts =
        listed.empty() ? (i + 1) % each == 0 : std::ranges::find(listed, i) != listed.end();
    return experts ? block_of(layer, e) : block_of(layer, gated(dense, activation));
  });
  return n;
}

LanguageNetwork read_llama_text(ConfigJson& c) {
  const Sizes s = read_sizes(c, {32, 4096, 32, 11008, 32000});
  LanguageNetwork n = decoder_of(s, c.flag("tie_word_embeddings", false));
  const AttentionPart a = attention_of(s, rope_theta(c, 10000));
  const FeedForwardPart f = gated(s.feed_forward, c.activation("hidden_act", "silu"));
  fill(n.stack, s.layers, [&](std::int64_t) { return block_of(a, f); });
  return n;
}

LanguageNetwork read_qwen2_text(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = decoder_of(s, c.flag("tie_word_embeddings", false));
  AttentionPart a = attention_of(s, rope_theta(c, 1e6));
  a.query_bias = a.key_bias = a.value_bias = true;
  const FeedForwardPart f = gated(s.feed_forward, c.activation("hidden_act", "silu"));
  fill(n.stack, s.layers, [&](std::int64_t) { return block_of(a, f); });
  return n;
}

}  // namespace reckon::huggingface
