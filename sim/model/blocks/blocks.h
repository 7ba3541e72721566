#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/model/graph.h"

// A network said block by block, for all that are no plain transformer (zoo.h): hybrids of
// attention and state-space layers, experts in some of the blocks, encoders with decoders, towers
// for images. A block is a list of parts, each with a residual sum; networks.h says what stands
// around the blocks. Sizes are checked where the graph is made (ModelGraph::make).
//
// A published matrix that holds several projections side by side (q, k and v; a gate and its
// values; Mamba's in_proj) is a layer for each here: the same weights and the same products.
namespace reckon {

/// What the norms of a network are.
enum class NormKind { rms, layer, layer_without_bias };

struct Rotary {
  double theta = 10000;    // base of the angles: RotaryEmbedding::theta
  std::int64_t width = 0;  // features of a head that are rotated; 0: all
};

/// RMS norms of queries and keys: of each head, with weights that the heads share (Qwen3) or none
/// (Llama 4); of all heads together (OLMo 2).
enum class QueryKeyNorm { none, heads, heads_without_weights, all };

/// Multi-head latent attention (TransformerDimensions::kv_lora_rank and those behind it).
struct LatentWidths {
  std::int64_t keys_values = 0, queries = 0, nope = 0, rope = 0, values = 0;
};

struct AttentionPart {
  std::int64_t heads = 1, kv_heads = 1, head_width = 64;
  bool causal = true;
  /// Queries of this stack, keys and values of the encoder.
  bool cross = false;
  bool query_bias = false, key_bias = false, value_bias = false, output_bias = false;
  std::optional<Rotary> rotary = std::nullopt;
  QueryKeyNorm norm = QueryKeyNorm::none;
  std::int64_t window = 0;
  bool sinks = false;
  double softcap = 0;  // Attention::softcap; 0: none
  double dropout = 0;  // probability, of the softmax's output
  /// The output is weighed by the sigmoid of another projection of its width (Qwen3-Next).
  bool gated = false;
  /// Adds the stack's bias of distances to the scores (T5).
  bool relative = false;
  std::optional<LatentWidths> latent = std::nullopt;
};

/// Mamba [Gu 2023, arXiv:2312.00752, section 3.4]; modeling_mamba.py, MambaMixer.
struct MambaPart {
  std::int64_t inner = 0, state = 16, kernel = 4, rank = 0;
  bool bias = false, conv_bias = true;
  bool norms = false;  // RMS norms of time steps, B and C (Jamba)
};

/// Mamba 2 [Dao 2024, arXiv:2405.21060, section 7]; modeling_mamba2.py, Mamba2Mixer.
struct Mamba2Part {
  std::int64_t heads = 0, head_width = 64, state = 128, groups = 1, kernel = 4, chunk = 256;
  bool bias = false, conv_bias = true;
  bool norm = true;             // the gated RMS norm before the last projection
  bool norm_of_groups = false;  // of each group by itself
};

/// Gated DeltaNet [Yang 2024, arXiv:2412.06464]; modeling_qwen3_next.py, Qwen3NextGatedDeltaNet.
struct DeltaPart {
  std::int64_t heads = 0, key_heads = 0, key_width = 128, value_width = 128, kernel = 4;
};

enum class FeedForwardKind { plain, gated, squared_relu };
struct FeedForwardPart {
  std::int64_t width = 0;
  FeedForwardKind kind = FeedForwardKind::gated;
  ActivationKind activation = ActivationKind::silu;
  bool bias = false;
  double dropout = 0;      // probability
  bool down_bias = false;  // of the last projection alone
};

/// A mixture of experts, and beside it what all tokens share.
struct ExpertsPart {
  std::int64_t experts = 1, per_token = 1;
  FeedForwardPart expert;
  bool router_bias = false;
  bool normalized = true;
  std::optional<FeedForwardPart> shared = std::nullopt;
  bool shared_gate = false;
};

using PartOp =
    std::variant<AttentionPart, MambaPart, Mamba2Part, DeltaPart, FeedForwardPart, ExpertsPart>;

/// Where its norms stand: before (pre), before and behind (both; Gemma 2), behind the sum (sum;
/// BERT), behind it before the sum (behind; OLMo 2), none.
enum class NormPlace { before, both, sum, behind, none };

struct Part {
  std::string name;  // "self_attn"
  PartOp op;
  NormPlace norm = NormPlace::before;
  double scale = 1;  // factor on the residual (Granite)
};

struct Block {
  std::vector<Part> parts;
  /// All parts start from the block's input, one sum (Phi, Falcon); one norm serves them all.
  bool parallel = false;
};

/// Blocks one behind the other, of one width.
struct Stack {
  std::int64_t hidden = 0;
  NormKind norm = NormKind::rms;
  std::vector<Block> blocks;
  bool last_norm = true;
  /// Buckets of the bias of distances that all its blocks share; 0: none.
  std::int64_t relative_buckets = 0, relative_heads = 0;
  double dropout = 0;  // probability, of what enters, and of what leaves each part
};

}  // namespace reckon
