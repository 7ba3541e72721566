#include "sim/model/zoo/tables.h"

#include <array>

namespace reckon {
namespace {

using Size = std::int64_t;

/// [Radford 2019, table 2]; huggingface.co/openai-community/gpt2*/config.json.
constexpr TransformerDimensions gpt2(Size layers, Size hidden, Size heads) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .vocabulary = 50257,
          .sequence_length = 1024,
          .positions = 1024};
}

/// [Brown 2020, arXiv:2005.14165, table 2.1]; 2,048 tokens of context, section 2.1. Every second
/// layer of the original attends to bands only; it counts as dense here. Two rows of the table do
/// not fit together: XL's 24 heads of 128 are not 2,048 wide (16 are), and 13B's 40 heads of 128
/// are 5,120 wide, not 5,140.
constexpr TransformerDimensions gpt3(Size layers, Size hidden, Size heads) {
  TransformerDimensions d = gpt2(layers, hidden, heads);
  d.sequence_length = d.positions = 2048;
  return d;
}

/// [Touvron 2023, arXiv:2307.09288]; huggingface.co/meta-llama/Llama-2-*-hf/config.json.
constexpr TransformerDimensions llama2(Size layers, Size hidden, Size heads, Size kv_heads,
                                       Size feed_forward) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .feed_forward = feed_forward,
          .vocabulary = 32000,
          .sequence_length = 4096,
          .gated_feed_forward = true,
          .rms_norm = true,
          .bias = false,
          .tied_output = false,
          .activation = ActivationKind::silu};
}

/// [Grattafiori 2024, arXiv:2407.21783, table 3]; pytorch/torchtitan models/llama3. 3.1 has the
/// same dimensions, pre-trained on sequences of 8,192 (section 3.4); 3.2:
/// huggingface.co/meta-llama/Llama-3.2-*/config.json.
constexpr TransformerDimensions llama3(Size layers, Size hidden, Size heads, Size feed_forward,
                                       bool tied = false) {
  TransformerDimensions d = llama2(layers, hidden, heads, 8, feed_forward);
  d.vocabulary = 128256;
  d.sequence_length = 8192;
  d.rotary_theta = 500000;
  d.tied_output = tied;
  return d;
}

/// [Jiang 2023, arXiv:2310.06825, table 1]: sliding window of 4,096.
constexpr TransformerDimensions mistral_7b() {
  TransformerDimensions d = llama2(32, 4096, 32, 8, 14336);
  d.sequence_length = 8192;
  d.window = 4096;
  return d;
}

/// [Jiang 2024, arXiv:2401.04088, table 1]; huggingface.co/mistralai/Mixtral-8x*-v0.1/config.json.
constexpr TransformerDimensions mixtral(Size layers, Size hidden, Size heads, Size expert,
                                        Size vocabulary) {
  TransformerDimensions d = llama2(layers, hidden, heads, 8, expert);
  d.vocabulary = vocabulary;
  d.sequence_length = 8192;
  d.rotary_theta = 1e6;
  d.experts = 8;
  d.experts_per_token = 2;
  return d;
}

/// [Yang 2024, arXiv:2407.10671, table 1], Qwen2.5: [arXiv:2412.15115, table 1];
/// huggingface.co/Qwen/Qwen2*-*/config.json.
constexpr TransformerDimensions qwen2(Size layers, Size hidden, Size heads, Size kv_heads,
                                      Size feed_forward, bool tied) {
  TransformerDimensions d = llama2(layers, hidden, heads, kv_heads, feed_forward);
  d.vocabulary = tied ? 151936 : 152064;
  d.qkv_bias = true;
  d.tied_output = tied;
  d.rotary_theta = 1e6;
  return d;
}

/// [Yang 2024, table 1]: 64 experts, 8 a token, and one of 20,480 that all share.
constexpr TransformerDimensions qwen2_57b_a14b() {
  TransformerDimensions d = qwen2(28, 3584, 28, 4, 18944, false);
  d.vocabulary = 151936;
  d.experts = 64;
  d.experts_per_token = 8;
  d.expert_feed_forward = 2560;
  d.shared_feed_forward = 20480;
  d.shared_expert_gate = true;
  d.normalized_experts = false;
  return d;
}

/// [Yang 2025, arXiv:2505.09388, tables 1 and 2]; huggingface.co/Qwen/Qwen3-*/config.json.
constexpr TransformerDimensions qwen3(Size layers, Size hidden, Size heads, Size kv_heads,
                                      Size feed_forward, bool tied) {
  TransformerDimensions d = llama2(layers, hidden, heads, kv_heads, feed_forward);
  d.head_width = 128;
  d.vocabulary = 151936;
  d.qk_norm = true;
  d.tied_output = tied;
  d.rotary_theta = 1e6;
  return d;
}
constexpr TransformerDimensions qwen3_moe(Size layers, Size hidden, Size heads, Size expert) {
  TransformerDimensions d = qwen3(layers, hidden, heads, 4, 3 * hidden, false);
  d.experts = 128;
  d.experts_per_token = 8;
  d.expert_feed_forward = expert;
  return d;
}

/// [DeepSeek-AI 2024, arXiv:2405.04434, section 3.1.2, V2-Lite appendix B; DeepSeek-AI 2024,
/// arXiv:2412.19437, section 4.2]; huggingface.co/deepseek-ai/DeepSeek-V*/config.json. Kimi-K2 is
/// built alike: huggingface.co/moonshotai/Kimi-K2-Base/config.json. The first layers have a dense
/// feed-forward part, the others one expert beside the routed ones for each `shared`. V3's module
/// that predicts a second token is not of the main model.
struct DeepSeekExperts {
  Size number, per_token, width, shared, dense_layers;
};
constexpr TransformerDimensions deepseek(Size layers, Size hidden, Size heads, Size feed_forward,
                                         Size vocabulary, Size q_lora_rank, DeepSeekExperts e) {
  TransformerDimensions d = llama2(layers, hidden, heads, 0, feed_forward);
  d.vocabulary = vocabulary;
  d.kv_lora_rank = 512;
  d.q_lora_rank = q_lora_rank;
  d.nope_head_width = d.value_head_width = 128;
  d.rope_head_width = 64;
  d.experts = e.number;
  d.experts_per_token = e.per_token;
  d.expert_feed_forward = e.width;
  d.shared_feed_forward = e.shared * e.width;
  d.dense_layers = e.dense_layers;
  return d;
}

/// mosaicml/llm-foundry scripts/train/yamls/pretrain/mpt-*.yaml, as its benchmarks run it: a
/// learned position table as long as the sequence, biases. (The published weights of MPT-7B have
/// ALiBi and no biases: mpt_7b_alibi.)
constexpr TransformerDimensions mpt(Size layers, Size hidden, Size heads) {
  TransformerDimensions d = gpt2(layers, hidden, heads);
  d.vocabulary = 50368;
  d.sequence_length = d.positions = 2048;
  return d;
}
/// huggingface.co/mosaicml/mpt-7b/config.json.
constexpr TransformerDimensions mpt_7b_alibi() {
  TransformerDimensions d = mpt(32, 4096, 32);
  d.vocabulary = 50432;
  d.positions = 0;
  d.alibi = true;
  d.bias = false;
  return d;
}

/// [Black 2022, arXiv:2204.06745, section 2.1]; huggingface.co/EleutherAI/gpt-neox-20b/config.json.
constexpr TransformerDimensions gpt_neox_20b() {
  return {.layers = 44,
          .hidden = 6144,
          .heads = 64,
          .vocabulary = 50432,
          .sequence_length = 2048,
          .tied_output = false,
          .rotary_width = 24,
          .parallel_residual = true};
}

/// [Devlin 2019, arXiv:1810.04805, section 3];
/// huggingface.co/google-bert/bert-*-uncased/config.json.
constexpr TransformerDimensions bert(Size layers, Size hidden, Size heads) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .vocabulary = 30522,
          .sequence_length = 512,
          .positions = 512,
          .token_types = 2,
          .causal = false,
          .post_norm = true,
          .dropout = 0.1};
}

constexpr std::array kLanguageModels{
    LanguageModel{"gpt2_small", gpt2(12, 768, 12)},
    LanguageModel{"gpt2_medium", gpt2(24, 1024, 16)},
    LanguageModel{"gpt2_large", gpt2(36, 1280, 20)},
    LanguageModel{"gpt2_xl", gpt2(48, 1600, 25)},
    LanguageModel{"gpt3_125m", gpt3(12, 768, 12)},
    LanguageModel{"gpt3_350m", gpt3(24, 1024, 16)},
    LanguageModel{"gpt3_760m", gpt3(24, 1536, 16)},
    LanguageModel{"gpt3_1_3b", gpt3(24, 2048, 16)},
    LanguageModel{"gpt3_2_7b", gpt3(32, 2560, 32)},
    LanguageModel{"gpt3_6_7b", gpt3(32, 4096, 32)},
    LanguageModel{"gpt3_13b", gpt3(40, 5120, 40)},
    LanguageModel{"gpt3_175b", gpt3(96, 12288, 96)},
    LanguageModel{"gpt_neox_20b", gpt_neox_20b()},
    LanguageModel{"llama2_7b", llama2(32, 4096, 32, 32, 11008)},
    LanguageModel{"llama2_13b", llama2(40, 5120, 40, 40, 13824)},
    LanguageModel{"llama2_70b", llama2(80, 8192, 64, 8, 28672)},
    LanguageModel{"llama3_8b", llama3(32, 4096, 32, 14336)},
    LanguageModel{"llama3_70b", llama3(80, 8192, 64, 28672)},
    LanguageModel{"llama3_1_8b", llama3(32, 4096, 32, 14336)},
    LanguageModel{"llama3_1_70b", llama3(80, 8192, 64, 28672)},
    LanguageModel{"llama3_1_405b", llama3(126, 16384, 128, 53248)},
    LanguageModel{"llama3_2_1b", llama3(16, 2048, 32, 8192, true)},
    LanguageModel{"llama3_2_3b", llama3(28, 3072, 24, 8192, true)},
    LanguageModel{"mistral_7b", mistral_7b()},
    LanguageModel{"mixtral_8x7b", mixtral(32, 4096, 32, 14336, 32000)},
    LanguageModel{"mixtral_8x22b", mixtral(56, 6144, 48, 16384, 32000)},
    LanguageModel{"mpt_7b", mpt(32, 4096, 32), true},
    LanguageModel{"mpt_30b", mpt(48, 7168, 56), true},
    LanguageModel{"mpt_7b_alibi", mpt_7b_alibi()},
    LanguageModel{"qwen2_0_5b", qwen2(24, 896, 14, 2, 4864, true)},
    LanguageModel{"qwen2_1_5b", qwen2(28, 1536, 12, 2, 8960, true)},
    LanguageModel{"qwen2_7b", qwen2(28, 3584, 28, 4, 18944, false)},
    LanguageModel{"qwen2_72b", qwen2(80, 8192, 64, 8, 29568, false)},
    LanguageModel{"qwen2_57b_a14b", qwen2_57b_a14b()},
    LanguageModel{"qwen2_5_0_5b", qwen2(24, 896, 14, 2, 4864, true)},
    LanguageModel{"qwen2_5_1_5b", qwen2(28, 1536, 12, 2, 8960, true)},
    LanguageModel{"qwen2_5_3b", qwen2(36, 2048, 16, 2, 11008, true)},
    LanguageModel{"qwen2_5_7b", qwen2(28, 3584, 28, 4, 18944, false)},
    LanguageModel{"qwen2_5_14b", qwen2(48, 5120, 40, 8, 13824, false)},
    LanguageModel{"qwen2_5_32b", qwen2(64, 5120, 40, 8, 27648, false)},
    LanguageModel{"qwen2_5_72b", qwen2(80, 8192, 64, 8, 29568, false)},
    LanguageModel{"qwen3_0_6b", qwen3(28, 1024, 16, 8, 3072, true)},
    LanguageModel{"qwen3_1_7b", qwen3(28, 2048, 16, 8, 6144, true)},
    LanguageModel{"qwen3_4b", qwen3(36, 2560, 32, 8, 9728, true)},
    LanguageModel{"qwen3_8b", qwen3(36, 4096, 32, 8, 12288, false)},
    LanguageModel{"qwen3_14b", qwen3(40, 5120, 40, 8, 17408, false)},
    LanguageModel{"qwen3_32b", qwen3(64, 5120, 64, 8, 25600, false)},
    LanguageModel{"qwen3_30b_a3b", qwen3_moe(48, 2048, 32, 768)},
    LanguageModel{"qwen3_235b_a22b", qwen3_moe(94, 4096, 64, 1536)},
    LanguageModel{"deepseek_v2",
                  deepseek(60, 5120, 128, 12288, 102400, 1536, {160, 6, 1536, 2, 1})},
    LanguageModel{"deepseek_v2_lite",
                  deepseek(27, 2048, 16, 10944, 102400, 0, {64, 6, 1408, 2, 1})},
    LanguageModel{"deepseek_v3",
                  deepseek(61, 7168, 128, 18432, 129280, 1536, {256, 8, 2048, 1, 3})},
    LanguageModel{"kimi_k2", deepseek(61, 7168, 64, 18432, 163840, 1536, {384, 8, 2048, 1, 1})},
    LanguageModel{"bert_base", bert(12, 768, 12)},
    LanguageModel{"bert_large", bert(24, 1024, 16)}};

}  // namespace

std::span<const LanguageModel> language_models() { return kLanguageModels; }

}  // namespace reckon
