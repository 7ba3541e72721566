#include <fmt/format.h>

#include <algorithm>

#include "exchange/huggingface/family.h"

// Families that make_transformer() and make_vision_transformer() build, and so the worker trains.
namespace reckon::huggingface {
namespace {

/// What the sizes of most families are called.
TransformerDimensions common(ConfigJson& c) {
  TransformerDimensions d;
  d.layers = c.number("num_hidden_layers", std::nullopt);
  d.hidden = c.number("hidden_size", std::nullopt);
  d.heads = c.number("num_attention_heads", std::nullopt);
  d.feed_forward = c.number("intermediate_size", std::nullopt);
  d.vocabulary = c.number("vocab_size", std::nullopt);
  return d;
}

TransformerDimensions llama_like(ConfigJson& c, double theta) {
  TransformerDimensions d = common(c);
  d.kv_heads = c.number("num_key_value_heads", d.heads);
  d.head_width = c.number("head_dim", 0);
  d.activation = c.activation("hidden_act", "silu");
  d.rotary_theta = rope_theta(c, theta);
  d.tied_output = c.flag("tie_word_embeddings", false);
  d.gated_feed_forward = true;
  d.rms_norm = true;
  d.bias = false;
  return d;
}

TransformerDimensions llama(ConfigJson& c) {
  TransformerDimensions d = llama_like(c, 10000);
  const bool attention = c.flag("attention_bias", false), mlp = c.flag("mlp_bias", false);
  if (attention != mlp) {
    c.mistake(attention ? "attention_bias" : "mlp_bias", "biases in one part of a block alone",
              "attention_bias and mlp_bias that are equal are covered");
  }
  d.bias = attention;
  return d;
}

/// Phi-3 and Phi-4: projections side by side in one matrix (qkv_proj, gate_up_proj), no biases.
TransformerDimensions phi3(ConfigJson& c) {
  TransformerDimensions d = llama_like(c, 10000);
  d.window = c.number("sliding_window", 0);
  const double share = c.real("partial_rotary_factor", 1);
  const std::int64_t head_width = d.head_width > 0 ? d.head_width : d.hidden / d.heads;
  if (!(share > 0 && share <= 1))
    c.mistake("partial_rotary_factor", fmt::format("partial_rotary_factor is {}", share),
              "it must lie in (0, 1]");
  else if (share < 1)
    d.rotary_width = static_cast<std::int64_t>(static_cast<double>(head_width) * share) / 2 * 2;
  return d;
}

TransformerDimensions mistral(ConfigJson& c) {
  TransformerDimensions d = llama_like(c, 10000);
  d.window = c.number("sliding_window", 0);
  return d;
}

TransformerDimensions mixtral(ConfigJson& c) {
  TransformerDimensions d = llama_like(c, 1e6);
  d.window = c.number("sliding_window", 0);
  d.experts = c.number("num_local_experts", std::nullopt);
  d.experts_per_token = c.number("num_experts_per_tok", std::nullopt);
  return d;
}

void refuse_sliding_window(ConfigJson& c) {
  if (!c.flag("use_sliding_window", false)) return;
  c.mistake("use_sliding_window", "a sliding window in some of the layers is not covered",
            "use_sliding_window: false is covered");
}

TransformerDimensions qwen2(ConfigJson& c) {
  TransformerDimensions d = llama_like(c, 10000);
  d.qkv_bias = true;
  refuse_sliding_window(c);
  return d;
}

void add_qwen_experts(ConfigJson& c, TransformerDimensions& d) {
  d.experts = c.number("num_experts", std::nullopt);
  d.experts_per_token = c.number("num_experts_per_tok", std::nullopt);
  d.expert_feed_forward = c.number("moe_intermediate_size", std::nullopt);
  d.normalized_experts = c.flag("norm_topk_prob", false);
  if (c.number("decoder_sparse_step", 1) != 1 || c.entries("mlp_only_layers").value_or(0) > 0) {
    c.mistake("decoder_sparse_step", "experts in some of the layers alone are not covered",
              "decoder_sparse_step: 1 and mlp_only_layers: [] are covered");
  }
}

TransformerDimensions qwen2_moe(ConfigJson& c) {
  TransformerDimensions d = llama_like(c, 10000);
  d.qkv_bias = true;
  refuse_sliding_window(c);
  add_qwen_experts(c, d);
  d.shared_feed_forward = c.number("shared_expert_intermediate_size", std::nullopt);
  d.shared_expert_gate = true;
  return d;
}

TransformerDimensions qwen3_like(ConfigJson& c) {
  TransformerDimensions d = llama_like(c, 10000);
  d.qk_norm = true;
  refuse_sliding_window(c);
  if (c.flag("attention_bias", false)) {
    c.mistake("attention_bias", "biases in attention alone are not covered",
              "attention_bias: false is covered");
  }
  return d;
}

TransformerDimensions qwen3(ConfigJson& c) {
  TransformerDimensions d = qwen3_like(c);
  if (d.head_width == 0) d.head_width = 128;
  return d;
}

TransformerDimensions qwen3_moe(ConfigJson& c) {
  TransformerDimensions d = qwen3_like(c);
  add_qwen_experts(c, d);
  return d;
}

/// Widths of multi-head latent attention. q_lora_rank: null says that queries have none.
void add_latent_attention(ConfigJson& c, TransformerDimensions& d) {
  d.kv_lora_rank = c.number("kv_lora_rank", std::nullopt);
  if (!c.present("q_lora_rank"))
    c.mistake("", "key 'q_lora_rank' is missing", "null where queries are not compressed");
  d.q_lora_rank = c.number("q_lora_rank", 0);
  d.nope_head_width = c.number("qk_nope_head_dim", std::nullopt);
  d.rope_head_width = c.number("qk_rope_head_dim", std::nullopt);
  d.value_head_width = c.number("v_head_dim", std::nullopt);
  if (const std::int64_t kv_heads = c.number("num_key_value_heads", d.heads); kv_heads != d.heads) {
    c.mistake(
        "num_key_value_heads",
        fmt::format("{} key-value heads beside {} heads with latent attention", kv_heads, d.heads),
        "as many as num_attention_heads are covered");
  }
  if (c.flag("attention_bias", false)) {
    c.mistake("attention_bias", "biases in attention alone are not covered",
              "attention_bias: false is covered");
  }
}

/// DeepSeek-V2 and V3, and Kimi-K2, which is built as V3. num_nextn_predict_layers says what else
/// the published weights hold; the model of transformers leaves it out.
TransformerDimensions deepseek(ConfigJson& c) {
  TransformerDimensions d = common(c);
  d.activation = c.activation("hidden_act", "silu");
  d.rotary_theta = rope_theta(c, 10000);
  d.tied_output = c.flag("tie_word_embeddings", false);
  d.gated_feed_forward = true;
  d.rms_norm = true;
  d.bias = false;
  add_latent_attention(c, d);
  d.experts = c.number("n_routed_experts", std::nullopt);
  d.experts_per_token = c.number("num_experts_per_tok", std::nullopt);
  d.expert_feed_forward = c.number("moe_intermediate_size", std::nullopt);
  d.shared_feed_forward = c.number("n_shared_experts", 0, 0) * d.expert_feed_forward;
  d.dense_layers = c.number("first_k_dense_replace", 0, 0);
  d.normalized_experts = c.flag("norm_topk_prob", false);
  if (c.number("moe_layer_freq", 1) != 1) {
    c.mistake("moe_layer_freq", "experts in every n-th layer only are not covered",
              "moe_layer_freq: 1 is covered");
  }
  return d;
}

TransformerDimensions gpt2(ConfigJson& c) {
  TransformerDimensions d;
  d.layers = c.number("n_layer", std::nullopt);
  d.hidden = c.number("n_embd", std::nullopt);
  d.heads = c.number("n_head", std::nullopt);
  d.feed_forward = c.number("n_inner", 0);
  d.vocabulary = c.number("vocab_size", std::nullopt);
  d.positions = d.sequence_length = c.number("n_positions", std::nullopt);
  d.activation = c.activation("activation_function", "gelu_new");
  d.dropout = dropout_rate(c, {"resid_pdrop", "embd_pdrop", "attn_pdrop"}, 0.1);
  d.tied_output = c.flag("tie_word_embeddings", true);
  return d;
}

TransformerDimensions gpt_neox(ConfigJson& c) {
  TransformerDimensions d = common(c);
  d.activation = c.activation("hidden_act", "gelu");
  d.dropout = dropout_rate(c, {"hidden_dropout", "attention_dropout"}, 0);
  d.rotary_theta = c.real("rotary_emb_base", 10000);
  const double share = c.real("rotary_pct", 0.25);
  if (!(share > 0 && share <= 1)) {
    c.mistake("rotary_pct", fmt::format("rotary_pct is {}", share), "it must lie in (0, 1]");
  } else if (share < 1) {
    const std::int64_t head_width = d.hidden / d.heads;
    const double width = static_cast<double>(head_width) * share;
    d.rotary_width = std::max<std::int64_t>(2, static_cast<std::int64_t>(width));
  }
  d.parallel_residual = c.flag("use_parallel_residual", true);
  d.tied_output = c.flag("tie_word_embeddings", false);
  if (!c.flag("attention_bias", true)) {
    c.mistake("attention_bias", "biases in the feed-forward part alone are not covered",
              "attention_bias: true is covered");
  }
  return d;
}

VisionTransformerDimensions vit(ConfigJson& c) {
  VisionTransformerDimensions d;
  d.layers = c.number("num_hidden_layers", std::nullopt);
  d.hidden = c.number("hidden_size", std::nullopt);
  d.heads = c.number("num_attention_heads", std::nullopt);
  d.feed_forward = c.number("intermediate_size", std::nullopt);
  d.patch = c.number("patch_size", std::nullopt);
  d.image = c.number("image_size", std::nullopt);
  d.channels = c.number("num_channels", 3);
  d.activation = c.activation("hidden_act", "gelu");
  d.dropout = dropout_rate(c, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, 0);
  d.qkv_bias = c.flag("qkv_bias", true);
  const auto labels = c.entries("id2label");
  d.classes =
      labels && *labels > 0 ? static_cast<std::int64_t>(*labels) : c.number("num_labels", 0, 0);
  if (d.classes == 0)
    c.mistake("", "the number of classes is missing", "give num_labels, or the labels as id2label");
  return d;
}

/// As make_transformer says them.
template <TransformerDimensions (*read)(ConfigJson&)>
void transformer(ConfigJson& c, HuggingFaceModel& model) {
  const TransformerDimensions d = read(c);
  if (d.positions > 0) {
    model.longest_sequence = model.sequence_length = d.positions;
  } else {
    take_longest(c, model, std::nullopt);
  }
  model.dimensions = d;
}
void vision_transformer(ConfigJson& c, HuggingFaceModel& model) { model.dimensions = vit(c); }

// Longer names before those that they begin with.
constexpr std::array kTransformers{Family{"deepseek_v2", "DeepseekV2", transformer<deepseek>},
                                   Family{"deepseek_v3", "DeepseekV3", transformer<deepseek>},
                                   Family{"gpt2", "GPT2", transformer<gpt2>},
                                   Family{"gpt_neox", "GPTNeoX", transformer<gpt_neox>},
                                   Family{"kimi_k2", "KimiK2", transformer<deepseek>},
                                   Family{"llama", "Llama", transformer<llama>},
                                   Family{"mistral", "Mistral", transformer<mistral>},
                                   Family{"mixtral", "Mixtral", transformer<mixtral>},
                                   Family{"phi3", "Phi3", transformer<phi3>},
                                   Family{"qwen2_moe", "Qwen2Moe", transformer<qwen2_moe>},
                                   Family{"qwen2", "Qwen2", transformer<qwen2>},
                                   Family{"qwen3_moe", "Qwen3Moe", transformer<qwen3_moe>},
                                   Family{"qwen3", "Qwen3", transformer<qwen3>},
                                   Family{"vit", "ViT", vision_transformer}};

}  // namespace

std::span<const Family> transformer_families() { return kTransformers; }

}  // namespace reckon::huggingface
