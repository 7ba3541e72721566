#pragma once
#include "sim/model/graph.h"
#include "sim/scenario/artifact/fields.h"

// Fields of the layers of a network (sim/model/graph.h). The graph itself has none: what it
// is made of is its name, unit, input and layers, and it is made again from them.
namespace reckon {

RECKON_WORDS(SampleUnit, image, sequence, record)
RECKON_WORDS(ActivationKind, relu, gelu, silu, tanh, sigmoid)
RECKON_WORDS(PoolKind, max, average)

RECKON_NO_FIELDS(InputLayer)
RECKON_FIELDS(Linear, in, out, bias)
RECKON_FIELDS(Conv2d, in, out, kernel_h, kernel_w, stride, padding, groups, bias, padding_w)
RECKON_FIELDS(BatchNorm, channels)
RECKON_FIELDS(LayerNorm, width, bias, affine)
RECKON_FIELDS(RmsNorm, width, heads, shared, affine)
RECKON_FIELDS(Activation, kind)
RECKON_FIELDS(Pool2d, kind, kernel, stride, padding)
RECKON_NO_FIELDS(GlobalAveragePool)
RECKON_NO_FIELDS(Flatten)
RECKON_FIELDS(Dropout, rate, whole_sample)
RECKON_FIELDS(Embedding, rows, width)
RECKON_FIELDS(PositionEmbedding, rows, width)
RECKON_FIELDS(RotaryEmbedding, head_width, theta, rotated)
RECKON_FIELDS(SinusoidalPositions, width)
RECKON_FIELDS(ClassToken, width)
RECKON_NO_FIELDS(ImageTokens)
RECKON_FIELDS(EmbeddingBag, rows, width, ids)
RECKON_FIELDS(SelectFeatures, first, count)
RECKON_FIELDS(PairwiseDots, vectors, width)
RECKON_FIELDS(Attention, heads, kv_heads, head_width, causal, dropout, window, alibi, value_width,
              sinks, softcap)
RECKON_FIELDS(ExpertDispatch, experts, top_k)
RECKON_FIELDS(ExpertLinear, experts, top_k, in, out, bias)
RECKON_FIELDS(ExpertCombine, experts, top_k, normalize)
RECKON_FIELDS(SelectTokens, count, masked)
RECKON_NO_FIELDS(Add)
RECKON_NO_FIELDS(Multiply)
RECKON_NO_FIELDS(Concat)
RECKON_FIELDS(ScaleBy, factor)
RECKON_FIELDS(ExtraInput, rows, width)
RECKON_FIELDS(Conv3d, in, out, kernel, stride, padding, bias)
RECKON_FIELDS(TransposedConv, in, out, kernel, stride, dimensions, bias)
RECKON_FIELDS(GroupNorm, channels, groups)
RECKON_FIELDS(Upsample, factor)
RECKON_FIELDS(RoiAlign, regions, size)
RECKON_FIELDS(RegionTokens, regions)
RECKON_FIELDS(RegroupTokens, join, split)
RECKON_NO_FIELDS(PairSums)
RECKON_FIELDS(ConcatToHeads, heads)
RECKON_FIELDS(Recurrence, hidden, gates)
RECKON_FIELDS(SequenceConv, in, out, kernel, stride, groups, bias)
RECKON_FIELDS(SelectiveScan, width, state)
RECKON_FIELDS(StateSpace, heads, head_width, state, groups, chunk)
RECKON_FIELDS(DeltaRule, heads, key_heads, key_width, value_width, chunk)
RECKON_FIELDS(RelativeBias, heads, buckets)
RECKON_NO_FIELDS(JoinTokens)
RECKON_FIELDS(Modulate, gate)
RECKON_FIELDS(SimilarityScores, width, samples, bias)
RECKON_FIELDS(FeatureScale, width)
RECKON_FIELDS(WeightNorms, in, out)
RECKON_FIELDS(Operator, output, parameters, multiply_adds, convolution, view, table)
RECKON_FIELDS(SoftmaxCrossEntropy, classes)
RECKON_NO_FIELDS(SigmoidCrossEntropy)
RECKON_NO_FIELDS(MeanSquaredError)

RECKON_FIELDS(Layer, id, name, group, op, inputs, output, tied_to, frozen, four_bit)

/// What a ModelGraph is made from.
struct WrittenModel {
  std::string name;
  SampleUnit unit = SampleUnit::image;
  Shape input;
  std::vector<Layer> layers;
};
RECKON_FIELDS(WrittenModel, name, unit, input, layers)

}  // namespace reckon
