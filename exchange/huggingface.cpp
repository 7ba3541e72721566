#include "exchange/huggingface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "exchange/config_json.h"

namespace reckon {
namespace {

using Dimensions = std::variant<TransformerDimensions, VisionTransformerDimensions>;

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

/// One rate stands for all: the network has one.
double dropout(ConfigJson& c, std::initializer_list<const char*> keys, double otherwise) {
  const double first = c.real(*keys.begin(), otherwise);
  for (const char* key : keys) {
    const double rate = c.real(key, otherwise);
    if (rate != first) {
      c.mistake(key, fmt::format("{} {} differs from {} {}", key, rate, *keys.begin(), first),
                "one rate for the whole network is covered");
    }
  }
  return first;
}

TransformerDimensions llama_like(ConfigJson& c, double theta) {
  TransformerDimensions d = common(c);
  d.kv_heads = c.number("num_key_value_heads", d.heads);
  d.head_width = c.number("head_dim", 0);
  d.activation = c.activation("hidden_act", "silu");
  d.rotary_theta = c.real("rope_theta", theta);
  d.tied_output = c.flag("tie_word_embeddings", false);
  d.gated_feed_forward = true;
  d.rms_norm = true;
  d.bias = false;
  return d;
}

Dimensions llama(ConfigJson& c) {
  TransformerDimensions d = llama_like(c, 10000);
  const bool attention = c.flag("attention_bias", false), mlp = c.flag("mlp_bias", false);
  if (attention != mlp) {
    c.mistake(attention ? "attention_bias" : "mlp_bias", "biases in one part of a block alone",
              "attention_bias and mlp_bias that are equal are covered");
  }
  d.bias = attention;
  return d;
}

Dimensions mistral(ConfigJson& c) {
  TransformerDimensions d = llama_like(c, 10000);
  d.window = c.number("sliding_window", 0);
  return d;
}

Dimensions mixtral(ConfigJson& c) {
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

Dimensions qwen2(ConfigJson& c) {
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

Dimensions qwen2_moe(ConfigJson& c) {
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

Dimensions qwen3(ConfigJson& c) {
  TransformerDimensions d = qwen3_like(c);
  if (d.head_width == 0) d.head_width = 128;
  return d;
}

Dimensions qwen3_moe(ConfigJson& c) {
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
Dimensions deepseek(ConfigJson& c) {
  TransformerDimensions d = common(c);
  d.activation = c.activation("hidden_act", "silu");
  d.rotary_theta = c.real("rope_theta", 10000);
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

Dimensions gpt2(ConfigJson& c) {
  TransformerDimensions d;
  d.layers = c.number("n_layer", std::nullopt);
  d.hidden = c.number("n_embd", std::nullopt);
  d.heads = c.number("n_head", std::nullopt);
  d.feed_forward = c.number("n_inner", 0);
  d.vocabulary = c.number("vocab_size", std::nullopt);
  d.positions = d.sequence_length = c.number("n_positions", std::nullopt);
  d.activation = c.activation("activation_function", "gelu_new");
  d.dropout = dropout(c, {"resid_pdrop", "embd_pdrop", "attn_pdrop"}, 0.1);
  d.tied_output = c.flag("tie_word_embeddings", true);
  return d;
}

Dimensions gpt_neox(ConfigJson& c) {
  TransformerDimensions d = common(c);
  d.activation = c.activation("hidden_act", "gelu");
  d.dropout = dropout(c, {"hidden_dropout", "attention_dropout"}, 0);
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

Dimensions bert(ConfigJson& c) {
  TransformerDimensions d = common(c);
  d.positions = d.sequence_length = c.number("max_position_embeddings", std::nullopt);
  d.token_types = c.number("type_vocab_size", 2, 0);
  d.activation = c.activation("hidden_act", "gelu");
  d.dropout = dropout(c, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, 0.1);
  d.causal = false;
  d.post_norm = true;
  if (const std::string kind = c.text("position_embedding_type", "absolute"); kind != "absolute") {
    c.mistake("position_embedding_type",
              fmt::format("position_embedding_type '{}' is not covered", kind.substr(0, 40)),
              "absolute is covered");
  }
  return d;
}

Dimensions vit(ConfigJson& c) {
  VisionTransformerDimensions d;
  d.layers = c.number("num_hidden_layers", std::nullopt);
  d.hidden = c.number("hidden_size", std::nullopt);
  d.heads = c.number("num_attention_heads", std::nullopt);
  d.feed_forward = c.number("intermediate_size", std::nullopt);
  d.patch = c.number("patch_size", std::nullopt);
  d.image = c.number("image_size", std::nullopt);
  d.channels = c.number("num_channels", 3);
  d.activation = c.activation("hidden_act", "gelu");
  d.dropout = dropout(c, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, 0);
  d.qkv_bias = c.flag("qkv_bias", true);
  const auto labels = c.entries("id2label");
  d.classes =
      labels && *labels > 0 ? static_cast<std::int64_t>(*labels) : c.number("num_labels", 0, 0);
  if (d.classes == 0)
    c.mistake("", "the number of classes is missing", "give num_labels, or the labels as id2label");
  return d;
}

struct Family {
  std::string_view model_type;
  std::string_view architecture;  // how the class names of its models begin
  Dimensions (*read)(ConfigJson&);
};
// Longer names before those that they begin with.
constexpr std::array kFamilies{Family{"bert", "Bert", bert},
                               Family{"deepseek_v2", "DeepseekV2", deepseek},
                               Family{"deepseek_v3", "DeepseekV3", deepseek},
                               Family{"gpt2", "GPT2", gpt2},
                               Family{"gpt_neox", "GPTNeoX", gpt_neox},
                               Family{"kimi_k2", "KimiK2", deepseek},
                               Family{"llama", "Llama", llama},
                               Family{"mistral", "Mistral", mistral},
                               Family{"mixtral", "Mixtral", mixtral},
                               Family{"qwen2_moe", "Qwen2Moe", qwen2_moe},
                               Family{"qwen2", "Qwen2", qwen2},
                               Family{"qwen3_moe", "Qwen3Moe", qwen3_moe},
                               Family{"qwen3", "Qwen3", qwen3},
                               Family{"vit", "ViT", vit}};

/// By model_type; by the class, as "LlamaForCausalLM", where an old file has none.
const Family* family_of(ConfigJson& c) {
  const std::string type = c.text("model_type", "");
  const std::string architecture = c.first_text("architectures");
  for (const Family& family : kFamilies) {
    if (type == family.model_type) return &family;
    if (type.empty() && architecture.starts_with(fmt::format("{}For", family.architecture)))
      return &family;
  }
  const std::vector<std::string> known = huggingface_families();
  const std::string hint = fmt::format("model types: {}", fmt::join(known, ", "));
  if (type.empty() && architecture.empty()) {
    c.mistake("", "key 'model_type' is missing", hint);
  } else if (type.empty()) {
    c.mistake("architectures",
              fmt::format("architecture '{}' is not covered", architecture.substr(0, 80)), hint);
  } else {
    c.mistake("model_type",
              fmt::format("model type '{}' is not covered{}", type.substr(0, 80),
                          did_you_mean(type, known)),
              hint);
  }
  return nullptr;
}

/// Enough layers for one block of each kind.
void make_thin(TransformerDimensions& d) { d.layers = std::min(d.layers, d.dense_layers + 1); }
void make_thin(VisionTransformerDimensions& d) { d.layers = std::min<std::int64_t>(d.layers, 1); }

/// Sizes that do not fit together, said by the builder; a short sequence will do for that.
void check_dimensions(ConfigJson& c, const HuggingFaceModel& model) {
  HuggingFaceModel thin = model;
  std::visit([](auto& d) { make_thin(d); }, thin.dimensions);
  const bool table = std::holds_alternative<TransformerDimensions>(model.dimensions) &&
                     std::get<TransformerDimensions>(model.dimensions).positions > 0;
  const auto made = make_model(thin, table ? std::nullopt : std::optional<std::int64_t>(1));
  if (made) return;
  for (const Diagnostic& d : made.error()) c.mistake("", d.what, d.hint);
}

}  // namespace

std::vector<std::string> huggingface_families() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.model_type);
  return names;
}

Expected<HuggingFaceModel> read_huggingface_config(std::string_view text, const std::string& file) {
  ConfigJson c(text, file);
  HuggingFaceModel model;
  const Family* family = c.readable() ? family_of(c) : nullptr;
  if (family) {
    model.dimensions = family->read(c);
    model.name = c.text("_name_or_path", "");
    if (model.name.empty()) model.name = family->model_type;
    if (auto* d = std::get_if<TransformerDimensions>(&model.dimensions)) {
      model.longest_sequence =
          d->positions > 0 ? d->positions : c.number("max_position_embeddings", std::nullopt);
    }
    if (c.mistakes().empty()) check_dimensions(c, model);
  }
  if (!c.mistakes().empty()) return tl::unexpected<Diagnostics>(std::move(c.mistakes()));
  return model;
}

Expected<ModelGraph> make_model(const HuggingFaceModel& model,
                                std::optional<std::int64_t> sequence_length) {
  if (const auto* vision = std::get_if<VisionTransformerDimensions>(&model.dimensions))
    return make_vision_transformer(model.name, *vision);
  TransformerDimensions d = std::get<TransformerDimensions>(model.dimensions);
  d.sequence_length = sequence_length.value_or(d.sequence_length);
  if (d.sequence_length == 0) {
    return tl::unexpected<Diagnostics>(
        Diagnostics{{.what = fmt::format(
                         "{} takes sequences of up to {} tokens; how long yours are is not said",
                         model.name, model.longest_sequence),
                     .hint = "sequence_length: 4096"}});
  }
  return make_transformer(model.name, d);
}

}  // namespace reckon
