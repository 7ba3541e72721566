#pragma once
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "exchange/huggingface/huggingface.h"
#include "support/text.h"

// Published configs, the keys that matter of them, and what the tests ask of them.
namespace reckon::test {

inline ModelGraph graph_of(const std::string& text, std::optional<std::int64_t> tokens = 64) {
  const auto model = read_huggingface_config(text, "config.json");
  if (!model) FAIL(format(model.error()));
  auto graph = make_model(*model, tokens);
  if (!graph) FAIL(format(graph.error()));
  return std::move(*graph);
}

inline std::int64_t parameters_of(const std::string& text) { return graph_of(text).parameters(); }

inline const std::string kPhi3 = R"({"model_type": "phi3", "hidden_act": "silu",
  "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096,
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
  "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false,
  "vocab_size": 32064})";
inline const std::string kGptOss = R"({"model_type": "gpt_oss", "attention_bias": true,
  "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "intermediate_size": 2880,
  "max_position_embeddings": 131072, "num_attention_heads": 64, "num_experts_per_tok": 4,
  "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32,
  "rope_theta": 150000, "sliding_window": 128, "tie_word_embeddings": false,
  "vocab_size": 201088})";
inline const std::string kLlama4 = R"({"model_type": "llama4",
  "architectures": ["Llama4ForConditionalGeneration"],
  "text_config": {"attention_bias": false, "attention_chunk_size": 8192, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 5120, "interleave_moe_layer_step": 1,
    "intermediate_size": 8192, "intermediate_size_mlp": 16384,
    "max_position_embeddings": 262144, "model_type": "llama4_text", "no_rope_layers": [],
    "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48,
    "num_key_value_heads": 8, "num_local_experts": 16, "rope_theta": 500000.0,
    "use_qk_norm": true, "vocab_size": 202048},
  "vision_config": {"hidden_act": "gelu", "hidden_size": 1408, "image_size": 336,
    "intermediate_size": 5632, "model_type": "llama4_vision_model",
    "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 34, "patch_size": 14,
    "pixel_shuffle_ratio": 0.5, "projector_input_dim": 4096, "projector_output_dim": 4096,
    "vision_output_dim": 4096}})";
inline const std::string kMamba2 = R"({"model_type": "mamba2", "chunk_size": 256,
  "conv_kernel": 4, "expand": 2, "head_dim": 64, "hidden_size": 4096, "n_groups": 8,
  "num_heads": 128, "num_hidden_layers": 64, "state_size": 128, "tie_word_embeddings": false,
  "use_bias": false, "use_conv_bias": true, "vocab_size": 32768})";
inline const std::string kJamba = R"({"model_type": "jamba", "attn_layer_offset": 4,
  "attn_layer_period": 8, "expert_layer_offset": 1, "expert_layer_period": 2,
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256,
  "mamba_expand": 2, "mamba_proj_bias": false, "max_position_embeddings": 262144,
  "num_attention_heads": 32, "num_experts": 16, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "tie_word_embeddings": false,
  "vocab_size": 65536})";
inline const std::string kNemotronH = R"({"model_type": "nemotron_h",
  "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
  "attention_bias": false, "attention_head_dim": 128, "chunk_size": 128, "conv_kernel": 4,
  "hidden_size": 4096, "intermediate_size": 21504, "mamba_head_dim": 64,
  "mamba_num_heads": 128, "max_position_embeddings": 8192, "mlp_bias": false,
  "mlp_hidden_act": "relu2", "n_groups": 8, "num_attention_heads": 32,
  "num_hidden_layers": 52, "num_key_value_heads": 8, "ssm_state_size": 128,
  "tie_word_embeddings": false, "use_bias": false, "use_conv_bias": true,
  "vocab_size": 131072})";
inline const std::string kQwen3Next = R"({"model_type": "qwen3_next",
  "decoder_sparse_step": 1, "full_attention_interval": 4, "head_dim": 256,
  "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 5120,
  "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
  "linear_num_value_heads": 32, "linear_value_head_dim": 128,
  "max_position_embeddings": 262144, "mlp_only_layers": [], "moe_intermediate_size": 512,
  "norm_topk_prob": true, "num_attention_heads": 16, "num_experts": 512,
  "num_experts_per_tok": 10, "num_hidden_layers": 48, "num_key_value_heads": 2,
  "partial_rotary_factor": 0.25, "rope_theta": 10000000,
  "shared_expert_intermediate_size": 512, "tie_word_embeddings": false,
  "vocab_size": 151936})";
inline const std::string kBart = R"({"model_type": "bart", "activation_function": "gelu",
  "d_model": 1024, "decoder_attention_heads": 16, "decoder_ffn_dim": 4096,
  "decoder_layers": 12, "dropout": 0.1, "encoder_attention_heads": 16,
  "encoder_ffn_dim": 4096, "encoder_layers": 12, "max_position_embeddings": 1024,
  "vocab_size": 50265})";
inline const std::string kLlava = R"({"model_type": "llava",
  "architectures": ["LlavaForConditionalGeneration"], "projector_hidden_act": "gelu",
  "text_config": {"max_position_embeddings": 4096, "model_type": "llama",
    "vocab_size": 32064},
  "vision_config": {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
    "model_type": "clip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 24,
    "patch_size": 14, "projection_dim": 768}})";
inline const std::string kQwen2Vl = R"({"model_type": "qwen2_vl", "hidden_act": "silu",
  "hidden_size": 1536, "intermediate_size": 8960, "max_position_embeddings": 32768,
  "num_attention_heads": 12, "num_hidden_layers": 28, "num_key_value_heads": 2,
  "tie_word_embeddings": true, "vocab_size": 151936,
  "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16,
    "in_chans": 3, "hidden_size": 1536, "patch_size": 14, "spatial_merge_size": 2,
    "temporal_patch_size": 2}})";

/// All of them: what any of them becomes is answered.
inline const std::vector<std::string> kNetworks{kPhi3,      kGptOss,    kLlama4, kMamba2, kJamba,
                                                kNemotronH, kQwen3Next, kBart,   kLlava,  kQwen2Vl};

}  // namespace reckon::test
