#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/words.h"

// The kinds of layers: what each needs to be run and counted. Shapes are those of ONE sample (no
// batch axis), row major: images are (C, H, W), token sequences are (T) of ids and (T, D) of
// features.
namespace reckon {

using Shape = std::vector<std::int64_t>;
/// Product of the dimensions; 1 for no dimensions.
std::int64_t elements(const Shape& shape);
/// "(3, 224, 224)"
std::string to_text(const Shape& shape);

enum class ActivationKind { relu, gelu, silu, tanh, sigmoid };
constexpr auto words_of(ActivationKind) {
  return std::array{Word<ActivationKind>{"relu", ActivationKind::relu},
                    Word<ActivationKind>{"gelu", ActivationKind::gelu},
                    Word<ActivationKind>{"silu", ActivationKind::silu},
                    Word<ActivationKind>{"tanh", ActivationKind::tanh},
                    Word<ActivationKind>{"sigmoid", ActivationKind::sigmoid}};
}
enum class PoolKind { max, average };
constexpr auto words_of(PoolKind) {
  return std::array{Word<PoolKind>{"max", PoolKind::max},
                    Word<PoolKind>{"average", PoolKind::average}};
}

// What each kind of layer needs to be run and counted. Weight shapes are given behind each.
/// The sample as it comes; a model may have several (BERT: tokens and their segments), all of the
/// model's input shape.
struct InputLayer {};
/// (out, in), (out); along the last axis of (in) or (T, in).
struct Linear {
  std::int64_t in = 0, out = 0;
  bool bias = true;
};
/// (out, in/groups, kernel_h, kernel_w), (out)
struct Conv2d {
  std::int64_t in = 0, out = 0, kernel_h = 1, kernel_w = 1, stride = 1, padding = 0, groups = 1;
  bool bias = false;
  std::optional<std::int64_t> padding_w = std::nullopt;  // left and right; none: as `padding`
  std::int64_t columns_padded() const { return padding_w.value_or(padding); }
};
/// Scale, shift (C); running mean and variance are no parameters.
struct BatchNorm {
  std::int64_t channels = 0;
};
/// (D), (D); not affine: no weights (DiT's norms, whose scale comes from elsewhere).
struct LayerNorm {
  std::int64_t width = 0;
  bool bias = true;
  bool affine = true;
};
/// (D). heads > 1: over each head of (T, heads * D) by itself, all with the same weights (Qwen3's
/// norms of queries and keys) or, not shared, each with its own (heads * D) (Mamba 2's gated norm
/// of groups). Not affine: no weights (Llama 4's norms of queries and keys).
struct RmsNorm {
  std::int64_t width = 0;
  std::int64_t heads = 1;
  bool shared = true;
  bool affine = true;
};
struct Activation {
  ActivationKind kind = ActivationKind::relu;
};
struct Pool2d {
  PoolKind kind = PoolKind::max;
  std::int64_t kernel = 2, stride = 2, padding = 0;
};
/// (C, H, W) -> (C)
struct GlobalAveragePool {};
struct Flatten {};
/// whole_sample: drops the sample's whole tensor, the others are scaled up (stochastic depth).
struct Dropout {
  double rate = 0;  // probability
  bool whole_sample = false;
};
/// (rows, D): token -> vector
struct Embedding {
  std::int64_t rows = 0, width = 0;
};
/// (rows, D), added to (T, D), T <= rows
struct PositionEmbedding {
  std::int64_t rows = 0, width = 0;
};
/// Rotates each head's pairs by position * theta^(-2i/rotated) [Su 2021, eq. 15]. No parameters.
struct RotaryEmbedding {
  std::int64_t head_width = 0;
  double theta = 10000;      // no unit
  std::int64_t rotated = 0;  // the first so many features of a head; 0: all
};
/// Adds sin and cos of position / 10000^(2i/width) [Vaswani 2017, section 3.5]. No parameters.
struct SinusoidalPositions {
  std::int64_t width = 0;
};
/// (D), put before (T, D): (T + 1, D), ViT's class token.
struct ClassToken {
  std::int64_t width = 0;
};
/// (C, H, W) -> (H * W, C): each point of an image becomes a token. (H * H, C) -> (C, H, H): back.
struct ImageTokens {};
/// (rows, D): the sum of the vectors of `ids` ids, (ids) -> (D); DLRM's tables.
struct EmbeddingBag {
  std::int64_t rows = 0, width = 0, ids = 1;
};
/// (n) -> (count): `count` fields of a record from `first` on.
struct SelectFeatures {
  std::int64_t first = 0, count = 1;
};
/// Dot products of each pair of its n inputs (width): (n (n-1) / 2) [Naumov 2019, section 2.1.3].
struct PairwiseDots {
  std::int64_t vectors = 0, width = 0;
};
/// softmax(Q K^T / sqrt(head_width)) V. Inputs: q (T, heads*w), k and v (T, kv_heads*w), already
/// projected; or one input that holds q, k and v side by side, (T, (heads + 2 kv_heads) * w). With
/// values of a width u of their own: v (T, kv_heads*u), the output (T, heads*u).
/// Dropout: of the softmax's output. Not causal, k and v may have other tokens than q. A fourth
/// input, of k's shape, holds keys of distances, whose scores are added [Dai 2019, section 3.3]; of
/// (heads, T, tokens of k), what is added to the scores itself (RelativeBias). With sinks: (heads),
/// a score of each head that takes part in the softmax and has no value (gpt-oss).
struct Attention {
  std::int64_t heads = 1, kv_heads = 1, head_width = 64;
  bool causal = true;
  double dropout = 0;       // probability
  std::int64_t window = 0;  // each token sees so many before it [Jiang 2023, section 2]; 0: all
  bool alibi = false;       // scores lowered by distance, a slope a head [Press 2022]
  /// Of a head's values and output; 0: head_width. Another width is only simulated.
  std::int64_t value_width = 0;
  std::int64_t values() const { return value_width > 0 ? value_width : head_width; }
  // Only simulated:
  bool sinks = false;
  double softcap = 0;  // scores become c tanh(score / c) [Gemma 2, arXiv:2408.00118, eq. 1]
};

// A mixture of experts: a Linear makes the scores (T, experts); each token goes to its top_k.
// The rows (T * top_k, D) are sorted by expert.
/// tokens (T, D), scores (T, experts) -> rows (T * top_k, D)
struct ExpertDispatch {
  std::int64_t experts = 1, top_k = 1;
};
/// (experts, out, in), (experts, out). rows (T * top_k, in), scores (T, experts) -> (T * top_k,
/// out): each row times the matrix of its expert.
struct ExpertLinear {
  std::int64_t experts = 1, top_k = 1, in = 0, out = 0;
  bool bias = false;
};
/// rows (T * top_k, D), scores (T, experts) -> (T, D): the sum of a token's rows by the softmax of
/// its scores. normalize: those of the top_k add up to one.
struct ExpertCombine {
  std::int64_t experts = 1, top_k = 1;
  bool normalize = true;
};
/// (T, D) -> (count, D): the first `count` tokens, or the `count` tokens that the data has masked.
struct SelectTokens {
  std::int64_t count = 1;
  bool masked = false;
};
/// Residual: element-wise sum of the inputs. The sum of losses is a loss. The last of two may be
/// one number a channel, (C) for (C, H, W).
struct Add {};
/// Gate: element-wise product of two inputs. The second may be one number a channel, (C) for
/// (C, H, W), or one a token, (T, 1) for (T, D).
struct Multiply {};
/// Side by side: channels of images, features of all others.
struct Concat {};
/// Times a constant. A scaled loss is a loss.
struct ScaleBy {
  double factor = 1;
};

// Layers that are simulated and not trained here (only_simulated()).
/// What else comes with a sample, of a shape of its own: (rows) of ids where width is 0, else
/// (rows, width).
struct ExtraInput {
  std::int64_t rows = 1, width = 0;
};
/// Cubic kernels over (C, D, H, W). (out, in, kernel, kernel, kernel), (out)
struct Conv3d {
  std::int64_t in = 0, out = 0, kernel = 3, stride = 1, padding = 1;
  bool bias = false;
};
/// Each side n of an image or, with 3 dimensions, of a volume becomes (n - 1) stride + kernel.
/// (in, out, kernel, ..., kernel), (out)
struct TransposedConv {
  std::int64_t in = 0, out = 0, kernel = 2, stride = 2, dimensions = 2;
  bool bias = true;
};
/// (C), (C): over each group of channels of a sample by itself; as many groups as channels:
/// instance norm [Wu 2018, arXiv:1803.08494].
struct GroupNorm {
  std::int64_t channels = 0, groups = 1;
};
/// Each point of (C, H, W) factor x factor times.
struct Upsample {
  std::int64_t factor = 2;
};
/// `regions` of an image's feature maps (C, H, W), all of C channels, each sampled at size x size
/// bins of four points [He 2017, arXiv:1703.06870, section 3]; stacked: (C, regions * size, size).
struct RoiAlign {
  std::int64_t regions = 1, size = 7;
};
/// (C, regions * S, S) -> (regions, C S S)
struct RegionTokens {
  std::int64_t regions = 1;
};
/// (T, D) -> (T, D) regrouped in its order: `join` tokens become one, then each `split`; what does
/// not fill a group is padded.
struct RegroupTokens {
  std::int64_t join = 1, split = 1;
};
/// (T, D) and (U, D) -> (T U, D): the sum of each pair.
struct PairSums {};
/// (T, heads * w) and (T, s) -> (T, heads * (w + s)): behind the features of each head those that
/// all heads share; the keys of multi-head latent attention [DeepSeek-AI 2024, arXiv:2405.04434,
/// eq. 17].
struct ConcatToHeads {
  std::int64_t heads = 1;
};
/// (T, in) -> (T / stride, out), rounded up, padded so: a convolution along the tokens. As many
/// groups as channels: each by itself. (out, in/groups, kernel), (out)
struct SequenceConv {
  std::int64_t in = 0, out = 0, kernel = 4, stride = 1, groups = 1;
  bool bias = true;
};
/// Mamba's recurrence of a state for each feature [Gu 2023, arXiv:2312.00752, algorithm 2]: x (T,
/// width), time steps (T, width), B and C (T, state) -> (T, width). Decay (width, state), skip
/// (width).
struct SelectiveScan {
  std::int64_t width = 0, state = 16;
};
/// Mamba 2's, one decay a head, computed chunk by chunk as matrix products [Dao 2024,
/// arXiv:2405.21060, section 6]: x (T, heads * head_width), B and C (T, groups * state), time steps
/// (T, heads) -> (T, heads * head_width). Decay, skip and bias of the time steps: (3, heads).
struct StateSpace {
  std::int64_t heads = 1, head_width = 64, state = 128, groups = 1, chunk = 256;
};
/// The gated delta rule, chunk by chunk [Yang 2024, arXiv:2412.06464, section 3.3]: q and k (T,
/// key_heads * key_width), v (T, heads * value_width), strength and decay (T, heads) -> (T, heads *
/// value_width). Decay and bias of its steps: (2, heads).
struct DeltaRule {
  std::int64_t heads = 1, key_heads = 1, key_width = 128, value_width = 128, chunk = 64;
};
/// (T, .) of queries and (S, .) of keys -> (heads, T, S): a learned number for each head and bucket
/// of distances, for Attention to add to its scores [Raffel 2020, arXiv:1910.10683, section 2.1].
/// (buckets, heads)
struct RelativeBias {
  std::int64_t heads = 1, buckets = 32;
};
/// (T, D), (U, D), ... -> (T + U + ..., D): one behind the other.
struct JoinTokens {};
/// (T, D) times one plus a number a feature, (D), plus a third input (D) [Peebles 2023,
/// arXiv:2212.09748, section 3.2]. Gate: times the number alone.
struct Modulate {
  bool gate = false;
};
/// Two vectors (width) of a sample -> (samples): the scores of the first with the second of each
/// sample of the batch, times a learned number, plus another where there is a bias [Radford 2021,
/// arXiv:2103.00020, figure 3; Zhai 2023, arXiv:2303.15343, algorithm 1]. (1), (1)
struct SimilarityScores {
  std::int64_t width = 0, samples = 1;
  bool bias = false;
};
/// (T, D): a learned number a feature, (D), times each. With a second input (D): divided by it.
struct FeatureScale {
  std::int64_t width = 0;
};
/// The length of each row of a matrix (out, in) that lies elsewhere: (out), read once a pass and
/// without a gradient.
struct WeightNorms {
  std::int64_t in = 0, out = 0;
};
/// An operator of another tool's graph that has no kind of its own here: an output of any shape,
/// its weights, and the multiply-adds of its products, for one sample; without products it is bound
/// by memory. A view shows its input or a part of
/// it and moves nothing. Of a table that is looked up, a sample reads its rows alone.
struct Operator {
  Shape output;
  std::int64_t parameters = 0;
  double multiply_adds = 0;
  bool convolution = false, view = false, table = false;
};
/// (T, gates * hidden), what the inputs give to the gates (a Linear), -> (T, hidden): the
/// recurrence, one step after the other; four gates: LSTM [Hochreiter 1997], three: GRU. (gates *
/// hidden, hidden), (gates * hidden)
struct Recurrence {
  std::int64_t hidden = 0, gates = 4;
};

/// (T, classes) or (classes) -> loss (1)
struct SoftmaxCrossEntropy {
  std::int64_t classes = 0;
};
/// Logits, each of a yes or no of its own -> loss (1)
struct SigmoidCrossEntropy {};
/// Predictions -> loss (1)
struct MeanSquaredError {};

using LayerOp =
    std::variant<InputLayer, Linear, Conv2d, BatchNorm, LayerNorm, RmsNorm, Activation, Pool2d,
                 GlobalAveragePool, Flatten, Dropout, Embedding, PositionEmbedding, RotaryEmbedding,
                 Attention, SelectTokens, Add, Multiply, SoftmaxCrossEntropy, SinusoidalPositions,
                 ClassToken, ImageTokens, EmbeddingBag, SelectFeatures, PairwiseDots,
                 ExpertDispatch, ExpertLinear, ExpertCombine, Concat, ScaleBy, SigmoidCrossEntropy,
                 MeanSquaredError, ExtraInput, Conv3d, TransposedConv, GroupNorm, Upsample,
                 RoiAlign, RegionTokens, RegroupTokens, PairSums, ConcatToHeads, Recurrence,
                 SequenceConv, SelectiveScan, StateSpace, DeltaRule, RelativeBias, JoinTokens,
                 Modulate, SimilarityScores, FeatureScale, WeightNorms, Operator>;

/// The simulator counts such layers; no runtime of ours trains them.
bool only_simulated(const LayerOp& op);

}  // namespace reckon
