#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/graph.h"

// Networks by name and by dimension. Each builder cites the publication and the reference
// implementation whose graph it builds, layer by layer; totals are tested against published counts.
namespace reckon {

/// A decoder or encoder by its dimensions (`workload.model: {transformer: {...}}` uses the same
/// names).
struct TransformerDimensions {
  std::int64_t layers = 0, hidden = 0, heads = 0;
  std::int64_t kv_heads = 0;      // 0: heads
  std::int64_t head_width = 0;    // 0: hidden / heads
  std::int64_t feed_forward = 0;  // 0: 4 * hidden
  std::int64_t vocabulary = 0;
  std::int64_t sequence_length = 0;
  std::int64_t positions = 0;       // rows of the learned position table; 0: rotary
  std::int64_t token_types = 0;     // BERT's segment table
  bool gated_feed_forward = false;  // SwiGLU: gate and up projections
  bool rms_norm = false;            // else layer norm
  bool bias = true;                 // on every projection
  bool tied_output = true;          // output projection shares the embedding
  bool causal = true;               // decoder
  bool post_norm = false;           // BERT: norm behind each residual sum
  ActivationKind activation = ActivationKind::gelu;
  double dropout = 0;  // probability: behind the embeddings and each sub-layer, and in attention
  double rotary_theta = 10000;     // base of the angles, where positions == 0
  std::int64_t rotary_width = 0;   // features of a head that are rotated; 0: all (GPT-NeoX: 1/4)
  bool alibi = false;              // no positions; attention scores fall with distance (MPT)
  std::int64_t window = 0;         // sliding window of attention, in tokens; 0: none
  bool qkv_bias = false;           // biases on q, k and v where bias is false (Qwen2)
  bool qk_norm = false;            // RMS norms of each head's q and k (Qwen3)
  bool parallel_residual = false;  // attention and feed-forward side by side (GPT-NeoX)
  // A mixture of experts in place of each feed-forward part.
  std::int64_t experts = 0;              // 0: none
  std::int64_t experts_per_token = 0;    // top-k
  std::int64_t expert_feed_forward = 0;  // inner width of one; 0: feed_forward
  std::int64_t shared_feed_forward = 0;  // inner width of the expert all tokens share; 0: none
  bool shared_expert_gate = false;       // weighed by a sigmoid of the token (Qwen2-MoE)
  bool normalized_experts = true;        // the weights of a token's experts add up to one
  std::int64_t dense_layers = 0;         // first blocks that have no experts, of feed_forward
  // Multi-head latent attention [DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.2 and appendix C]:
  // queries, keys and values are made of narrow vectors, each with an RMS norm; a head's query and
  // key are a part of its own and a rotated one, whose key all heads share. kv_heads, head_width,
  // rotary_width and window stay at their defaults.
  std::int64_t kv_lora_rank = 0;      // width of what keys and values are made of; 0: none
  std::int64_t q_lora_rank = 0;       // of queries; 0: made of the hidden state (V2-Lite)
  std::int64_t nope_head_width = 0;   // features of a head's query and key that are not rotated
  std::int64_t rope_head_width = 0;   // those that are
  std::int64_t value_head_width = 0;  // of a head's values and output
};
/// Blocks of attention and feed-forward, each with its residual sum. Names are Hugging Face's: of
/// BERT where not causal, of Llama where rms_norm, else of GPT-2 (whose q, k and v are one
/// projection, c_attn; with rotary positions they are three).
///
/// The loss, causal: each token predicts the next. All T count, as in Megatron and llm.c: the data
/// carries T + 1 tokens. Not causal: masked-LM over ceil(0.15 T) tokens, gathered before the head
/// as google-research/bert:run_pretraining.py does (its README: "set max_predictions_per_seq to
/// around max_seq_length * masked_lm_prob"), with BERT's transform (dense, activation, norm).
/// Latent attention has the names of modeling_deepseek_v3.py. Its two fused projections
/// (kv_a_proj_with_mqa, kv_b_proj) are two layers each here, of the same arithmetic together.
/// token_types > 0 adds what BERT pre-trains beside it: the pooler (dense and tanh of the first
/// token) and the next-sentence classifier; the two losses are summed.
///
/// All that is wrong with the dimensions comes at once.
Expected<ModelGraph> make_transformer(std::string name, const TransformerDimensions& d);

/// A vision transformer by its dimensions: [Dosovitskiy 2021, arXiv:2010.11929, section 3.1],
/// layers and names of torchvision/models/vision_transformer.py. Square images of 3 channels.
struct VisionTransformerDimensions {
  std::int64_t layers = 0, hidden = 0, heads = 0;
  std::int64_t feed_forward = 0;  // 0: 4 * hidden
  std::int64_t patch = 16;        // pixels
  std::int64_t image = 224;       // pixels
  std::int64_t channels = 3;
  std::int64_t classes = 1000;
  ActivationKind activation = ActivationKind::gelu;
  double dropout = 0;  // probability
  bool qkv_bias = true;
};
/// All that is wrong with the dimensions comes at once.
Expected<ModelGraph> make_vision_transformer(std::string name,
                                             const VisionTransformerDimensions& d);

/// hidden: widths of the layers between input and output.
Expected<ModelGraph> make_mlp(std::string name, std::int64_t inputs,
                              std::span<const std::int64_t> hidden, std::int64_t classes);

/// Names of the zoo, for messages: resnet50, efficientnet_b2, dlrm_mlperf, gpt3_175b, mixtral_8x7b,
/// transformer_big, ...
std::vector<std::string> zoo_names();
/// nullopt: no such name, or a sequence length that is not in 1..zoo_longest_sequence(name).
/// sequence_length applies to transformers only (nullopt: the model's own: 1,024 GPT-2; 4,096 Llama
/// 2; 8,192 Llama 3; 512 BERT; of others see tables.cpp and sequence_models.cpp). resnet50, 101 and
/// 152 are v1, the paper's; _v1_5 are torchvision's. BERT is BertForPreTraining: encoder, pooler,
/// tied masked-LM head, next-sentence head. GPT-2 has no dropout, as it is pre-trained today
/// (nanoGPT, llm.c).
std::optional<ModelGraph> zoo_model(std::string_view name,
                                    std::optional<std::int64_t> sequence_length = {});
/// The precise list of what can be a sequence model, for messages about `sequence_length` on an
/// image model.
bool zoo_takes_sequence_length(std::string_view name);
/// Longest sequence that the model can be built for: the rows of a learned position table; rotary
/// positions have no such end (2^20 here). 0: not a sequence model, or no such name.
std::int64_t zoo_longest_sequence(std::string_view name);

}  // namespace reckon
