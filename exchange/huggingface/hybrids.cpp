#include <fmt/format.h>

#include <cmath>

#include "exchange/huggingface/family.h"

// State-space models, and hybrids of their layers with attention.
namespace reckon::huggingface {
namespace {

LanguageNetwork language(std::int64_t hidden, std::int64_t vocabulary, bool tied) {
  LanguageNetwork n;
  n.stack.hidden = hidden;
  n.vocabulary = vocabulary;
  n.tied_output = tied;
  return n;
}

std::int64_t hybrid_blocks_of(ConfigJson& c) {
  return bounded(c, "num_hidden_layers", c.number("num_hidden_layers", std::nullopt), kMostBlocks);
}

Block only(std::string name, const PartOp& op) { return {{Part{std::move(name), op}}}; }

/// A width as a multiple of another that need not be whole (`expand: 2`).
std::int64_t times(ConfigJson& c, const char* key, double otherwise, std::int64_t width) {
  const double factor = c.real(key, otherwise);
  constexpr double kMost = 1024;
  if (factor > 0 && factor <= kMost)
    return static_cast<std::int64_t>(factor * static_cast<double>(width));
  c.mistake(key, fmt::format("{} is {}", key, factor), "it must lie in (0, 1024]");
  return width;
}

/// time_step_rank: a number, or "auto" for a sixteenth of the width, rounded up.
std::int64_t rank_of(ConfigJson& c, const char* key, std::int64_t hidden) {
  constexpr std::int64_t kShare = 16;
  return c.number(key, (hidden + kShare - 1) / kShare);
}

/// modeling_mamba.py. No feed-forward parts.
LanguageNetwork mamba(ConfigJson& c) {
  const std::int64_t layers = hybrid_blocks_of(c), hidden = c.number("hidden_size", std::nullopt);
  LanguageNetwork n =
      language(hidden, c.number("vocab_size", std::nullopt), c.flag("tie_word_embeddings", true));
  MambaPart m;
  m.inner = c.present("intermediate_size") ? c.number("intermediate_size", std::nullopt)
                                           : times(c, "expand", 2, hidden);
  m.state = c.number("state_size", 16);
  m.kernel = c.number("conv_kernel", 4);
  m.rank = rank_of(c, "time_step_rank", hidden);
  m.bias = c.flag("use_bias", false);
  m.conv_bias = c.flag("use_conv_bias", true);
  n.stack.blocks.assign(static_cast<std::size_t>(layers), only("mixer", m));
  return n;
}

/// modeling_mamba2.py.
LanguageNetwork mamba2(ConfigJson& c) {
  const std::int64_t layers = hybrid_blocks_of(c), hidden = c.number("hidden_size", std::nullopt);
  LanguageNetwork n =
      language(hidden, c.number("vocab_size", std::nullopt), c.flag("tie_word_embeddings", false));
  Mamba2Part m;
  m.heads = c.number("num_heads", std::nullopt);
  m.head_width = c.number("head_dim", 64);
  m.state = c.number("state_size", 128);
  m.groups = c.number("n_groups", 8);
  m.kernel = c.number("conv_kernel", 4);
  m.chunk = c.number("chunk_size", 256);
  m.bias = c.flag("use_bias", false);
  m.conv_bias = c.flag("use_conv_bias", true);
  if (const std::int64_t inner = times(c, "expand", 2, hidden); inner != m.heads * m.head_width)
    c.mistake("num_heads", fmt::format("{} heads of {} are not the {} features of the expanded "
                                       "hidden_size",
                                       m.heads, m.head_width, inner));
  n.stack.blocks.assign(static_cast<std::size_t>(layers), only("mixer", m));
  return n;
}

/// modeling_jamba.py: attention and experts in every n-th layer.
LanguageNetwork jamba(ConfigJson& c) {
  Sizes s = read_sizes(c);
  LanguageNetwork n = language(s.hidden, s.vocabulary, c.flag("tie_word_embeddings", false));
  const std::int64_t attention_each = c.number("attn_layer_period", 8);
  const std::int64_t attention_at = c.number("attn_layer_offset", 4, 0);
  const std::int64_t experts_each = c.number("expert_layer_period", 2);
  const std::int64_t experts_at = c.number("expert_layer_offset", 1, 0);
  MambaPart m;
  m.inner = times(c, "mamba_expand", 2, s.hidden);
  m.state = c.number("mamba_d_state", 16);
  m.kernel = c.number("mamba_d_conv", 4);
  m.rank = rank_of(c, "mamba_dt_rank", s.hidden);
  m.bias = c.flag("mamba_proj_bias", false);
  m.conv_bias = c.flag("mamba_conv_bias", true);
  m.norms = true;
  AttentionPart a = attention_of(s, 0);
  a.rotary = std::nullopt;
  const FeedForwardPart f{s.feed_forward, FeedForwardKind::gated,
                          c.activation("hidden_act", "silu")};
  ExpertsPart e;
  e.experts = c.number("num_experts", 16);
  e.per_token = c.number("num_experts_per_tok", 2);
  e.expert = f;
  e.normalized = false;
  for (std::int64_t i = 0; i < s.layers; ++i) {
    const bool attends = i % attention_each == attention_at;
    const bool experts = e.experts > 1 && i % experts_each == experts_at;
    Block b;
    b.parts.push_back(attends ? Part{"self_attn", a} : Part{"mamba", m});
    b.parts.push_back(experts ? Part{"feed_forward", e} : Part{"feed_forward", f});
    n.stack.blocks.push_back(std::move(b));
  }
  return n;
}

/// modeling_nemotron_h.py: one part a block, by a pattern of M (Mamba 2), * (attention), - (a plain
/// feed-forward part of squared ReLU) and E (experts).
std::vector<std::string> nemotron_pattern(ConfigJson& c, std::int64_t layers) {
  const std::string pattern = c.text("hybrid_override_pattern", "");
  if (pattern.empty()) {
    auto types = layer_types(c, "layers_block_type", layers, {"mamba", "attention", "mlp", "moe"});
    if (types.empty())
      c.mistake("", "key 'hybrid_override_pattern' is missing", "such as M-M-M-M*-");
    return types;
  }
  std::vector<std::string> types;
  for (const char letter : pattern) {
    if (letter == 'M')
      types.emplace_back("mamba");
    else if (letter == '*')
      types.emplace_back("attention");
    else if (letter == '-')
      types.emplace_back("mlp");
    else if (letter == 'E')
      types.emplace_back("moe");
    else if (letter != '|')
      c.mistake("hybrid_override_pattern", fmt::format("a layer '{}' is not covered", letter),
                "covered: M, *, -, E");
  }
  if (static_cast<std::int64_t>(types.size()) != layers && c.mistakes().empty())
    c.mistake("hybrid_override_pattern",
              fmt::format("the pattern has {} layers, num_hidden_layers {}", types.size(), layers));
  return types;
}

ExpertsPart nemotron_experts(ConfigJson& c) {
  ExpertsPart e;
  e.experts = c.number("n_routed_experts", std::nullopt);
  e.per_token = c.number("num_experts_per_tok", std::nullopt);
  e.expert = {c.number("moe_intermediate_size", std::nullopt), FeedForwardKind::squared_relu};
  e.shared = FeedForwardPart{c.number("moe_shared_expert_intermediate_size", std::nullopt),
                             FeedForwardKind::squared_relu};
  e.normalized = c.flag("norm_topk_prob", true);
  if (c.present("moe_latent_size") && c.number("moe_latent_size", 0, 0) > 0)
    c.mistake("moe_latent_size", "experts of a narrower width than the stream are not covered",
              "moe_latent_size: null is covered");
  return e;
}

LanguageNetwork nemotron_h(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = language(s.hidden, s.vocabulary, c.flag("tie_word_embeddings", false));
  const auto types = nemotron_pattern(c, s.layers);
  Mamba2Part m;
  m.heads = c.number("mamba_num_heads", std::nullopt);
  m.head_width = c.number("mamba_head_dim", 64);
  m.state = c.number("ssm_state_size", 128);
  m.groups = c.number("n_groups", 8);
  m.kernel = c.number("conv_kernel", 4);
  m.chunk = c.number("chunk_size", 128);
  m.bias = c.flag("use_bias", false);
  m.conv_bias = c.flag("use_conv_bias", true);
  m.norm_of_groups = true;
  AttentionPart a = attention_of(s, 0);
  a.rotary = std::nullopt;
  if (const std::int64_t width = c.number("attention_head_dim", 0)) a.head_width = width;
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = c.flag("attention_bias", false);
  const FeedForwardPart f{s.feed_forward, FeedForwardKind::squared_relu, ActivationKind::relu,
                          c.flag("mlp_bias", false)};
  if (const std::string act = c.text("mlp_hidden_act", "relu2"); act != "relu2")
    c.mistake("mlp_hidden_act",
              fmt::format("mlp_hidden_act '{}' is not covered", act.substr(0, 40)),
              "relu2 is covered");
  for (const std::string& type : types) {
    n.stack.blocks.push_back(type == "mamba"       ? only("mixer", m)
                             : type == "attention" ? only("mixer", a)
                             : type == "mlp"       ? only("mixer", f)
                                                   : only("mixer", nemotron_experts(c)));
  }
  return n;
}

/// modeling_granitemoehybrid.py (Granite 4): each layer has Mamba 2 or attention, then experts and
/// a part that all tokens share.
LanguageNetwork granite_hybrid(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = language(s.hidden, s.vocabulary, c.flag("tie_word_embeddings", false));
  const char* key = c.present("layer_types") ? "layer_types" : "layers_block_type";
  auto types = layer_types(c, key, s.layers, {"mamba", "attention"});
  if (types.empty()) types.assign(static_cast<std::size_t>(s.layers), "mamba");
  n.embedding_scale = c.real("embedding_multiplier", 1);
  n.logits_scale = 1 / std::max(1e-9, c.real("logits_scaling", 1));
  const double residual = c.real("residual_multiplier", 1);
  Mamba2Part m;
  const std::int64_t inner = times(c, "mamba_expand", 2, s.hidden);
  m.heads = c.number("mamba_n_heads", 128);
  m.head_width = std::max<std::int64_t>(1, inner / m.heads);
  if (const std::string width = c.present("mamba_d_head") ? "mamba_d_head" : ""; !width.empty())
    m.head_width = c.number(width, m.head_width);
  m.state = c.number("mamba_d_state", 256);
  m.groups = c.number("mamba_n_groups", 1);
  m.kernel = c.number("mamba_d_conv", 4);
  m.chunk = c.number("mamba_chunk_size", 256);
  m.bias = c.flag("mamba_proj_bias", false);
  m.conv_bias = c.flag("mamba_conv_bias", true);
  AttentionPart a = attention_of(s, rope_theta(c, 10000));
  if (c.text("position_embedding_type", "nope") != "rope") a.rotary = std::nullopt;
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = c.flag("attention_bias", false);
  const auto activation = c.activation("hidden_act", "silu");
  const FeedForwardPart shared{c.number("shared_intermediate_size", 1024), FeedForwardKind::gated,
                               activation};
  ExpertsPart e;
  e.experts = c.number("num_local_experts", 0, 0);
  PartOp second = shared;
  if (e.experts > 0) {
    e.per_token = c.number("num_experts_per_tok", std::nullopt);
    e.expert = {s.feed_forward, FeedForwardKind::gated, activation};
    e.shared = shared;
    second = e;
  }
  for (const std::string& type : types) {
    Block b;
    b.parts.push_back(type == "mamba" ? Part{"mamba", m, NormPlace::before, residual}
                                      : Part{"self_attn", a, NormPlace::before, residual});
    b.parts.push_back({"mlp", second, NormPlace::before, residual});
    n.stack.blocks.push_back(std::move(b));
  }
  return n;
}

/// modeling_qwen3_next.py: three layers of Gated DeltaNet, then one of gated attention.
LanguageNetwork qwen3_next(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  LanguageNetwork n = language(s.hidden, s.vocabulary, c.flag("tie_word_embeddings", false));
  const auto types =
      layer_types(c, "layer_types", s.layers, {"linear_attention", "full_attention"});
  const std::int64_t each = c.number("full_attention_interval", 4);
  DeltaPart r;
  r.heads = c.number("linear_num_value_heads", 32);
  r.key_heads = c.number("linear_num_key_heads", 16);
  r.key_width = c.number("linear_key_head_dim", 128);
  r.value_width = c.number("linear_value_head_dim", 128);
  r.kernel = c.number("linear_conv_kernel_dim", 4);
  AttentionPart a = attention_of(s, rope_theta(c, 10000));
  const double share = c.real("partial_rotary_factor", 0.25);
  a.rotary->width = static_cast<std::int64_t>(static_cast<double>(a.head_width) * share) / 2 * 2;
  a.norm = QueryKeyNorm::heads;
  a.gated = true;
  ExpertsPart e;
  const auto activation = c.activation("hidden_act", "silu");
  e.experts = c.number("num_experts", 512);
  e.per_token = c.number("num_experts_per_tok", 10);
  e.expert = {c.number("moe_intermediate_size", 512), FeedForwardKind::gated, activation};
  e.shared = FeedForwardPart{c.number("shared_expert_intermediate_size", 512),
                             FeedForwardKind::gated, activation};
  e.shared_gate = true;
  e.normalized = c.flag("norm_topk_prob", true);
  if (c.number("decoder_sparse_step", 1) != 1 || c.entries("mlp_only_layers").value_or(0) > 0)
    c.mistake("decoder_sparse_step", "experts in some of the layers alone are not covered",
              "decoder_sparse_step: 1 and mlp_only_layers: [] are covered");
  for (std::int64_t i = 0; i < s.layers; ++i) {
    const bool full = types.empty() ? (i + 1) % each == 0
                                    : types[static_cast<std::size_t>(i)] == "full_attention";
    Block b;
    b.parts.push_back(full ? Part{"self_attn", a} : Part{"linear_attn", r});
    b.parts.push_back({"mlp", e});
    n.stack.blocks.push_back(std::move(b));
  }
  return n;
}

/// No length is said: a state has no end. `longest`: what the file may say.
template <LanguageNetwork (*read)(ConfigJson&)>
void hybrid(ConfigJson& c, HuggingFaceModel& model) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 20, kMambas = 2048;
  model.dimensions = read(c);
  take_longest(c, model, kLongest);
  if (c.present("max_position_embeddings")) return;
  model.sequence_length = kMambas;
  model.notes.push_back(fmt::format(
      "the file says no length: sequences of {} tokens, as Mamba's were [Gu 2023, section 4.2]",
      kMambas));
}

constexpr std::array kHybrids{
    Family{"granitemoehybrid", "GraniteMoeHybrid", hybrid<granite_hybrid>},
    Family{"jamba", "Jamba", hybrid<jamba>},
    Family{"mamba2", "Mamba2", hybrid<mamba2>},
    Family{"mamba", "Mamba", hybrid<mamba>},
    Family{"nemotron_h", "NemotronH", hybrid<nemotron_h>},
    Family{"qwen3_next", "Qwen3Next", hybrid<qwen3_next>}};

}  // namespace

std::span<const Family> hybrid_families() { return kHybrids; }

}  // namespace reckon::huggingface
