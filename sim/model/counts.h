#pragma once
#include <span>

#include "sim/model/graph.h"

// What each kind of layer costs: one rule a kind, all of them in model_counts.cpp; weights and
// what is kept in model_weights.cpp.
// T tokens, w head width, u width of a head's values (w, but of latent attention), h heads, n
// elements of one sample's output. A multiply-add is two FLOPs.
//
// FORWARD
//   Linear                  2 in out a row; the bias is not counted  [Hoffmann 2022, app. F]
//   Conv2d                  2 kh kw (in/groups) n; half of it is torchvision's "GFLOPS" (MACs)
//   ExpertLinear            2 in out a row; there are T top_k rows
//   PairwiseDots            2 k k width for k vectors: all pairs in one batched product, as the
//                           reference facebookresearch/dlrm:dlrm_s_pytorch.py computes them
//   Attention               2 T T w h scores, 2 T T u h values       [Chowdhery 2022, app. B]
//                           3 T T h softmax                          [Hoffmann 2022, app. F]
//                           over S others T S, with a window T min(T, window); distances: 2 T S w h
//   BatchNorm, LayerNorm    5 n             fvcore jit_handles.py, DeepSpeed flops profiler
//   RmsNorm                 4 n             square, sum, two products
//   Activation, Dropout     n               DeepSpeed flops profiler
//   Pool2d                  kernel^2 n
//   GlobalAveragePool       elements of the input
//   Add                     n for each input beyond the first
//   Multiply                n
//   PositionEmbedding       n
//   RotaryEmbedding         3 n             x cos + rotate(x) sin; of what is rotated
//   SinusoidalPositions, ScaleBy   n
//   EmbeddingBag            n for each id beyond the first
//   ExpertCombine           2 top_k n, and 3 for each score
//   SoftmaxCrossEntropy, SigmoidCrossEntropy, MeanSquaredError   3 elements of the input
//   Conv3d                  2 kernel^3 in n
//   TransposedConv          2 kernel^dimensions out, for each element of the input
//   GroupNorm               5 n
//   RoiAlign                32 n: four points a bin, each interpolated between four of the map
//   PairSums                n
//   Recurrence              2 gates hidden hidden a step, and 4 a gate's element
//   InputLayer, Flatten, Embedding, SelectTokens, SelectFeatures, ClassToken, ImageTokens,
//   ExpertDispatch, Concat, ConcatToHeads, ExtraInput, Upsample, RegionTokens, RegroupTokens  0
// Attention counts the full T x T for a causal model too, although fused kernels skip half of it:
// so do the published MFU figures that forecasts are compared with.
//
// BACKWARD, what autograd runs
//   Linear, Conv2d          the weights' gradient (1x forward) and the input's (1x); the latter
//                           only where some earlier layer has parameters: a network's first
//                           layer has 1x
//   Attention               2x the products (each has two operands), 1x the softmax; a fused
//                           kernel's second forward is no model FLOP [Chowdhery 2022]
//   Embedding, SelectTokens n additions (scatter); EmbeddingBag: for each id
//   others                  1x forward; 0 where nothing before them is trained
//   A frozen layer          no gradient of its weights: 1x, where something before it is trained
//
// BYTES: elements_in and elements_out are activations that a kernel of its own reads and writes.
//   BatchNorm and GroupNorm read twice (statistics first; a frozen
//   BatchNorm has its own). A Recurrence reads its weights once:
//   they stay in the caches between its steps; the steps wait for each other (LayerCount::steps).
//   Attention is one fused kernel that never writes the scores [Dao 2022]. Flatten and a Dropout of
//   rate 0 move nothing. The loss writes its log-softmax, in fp32 whatever the precision, and
//   converts what goes in and its gradient [PyTorch, torch.amp, "CUDA Ops that can autocast to
//   float32": log_softmax].
//
// SAVED for the backward pass, as PyTorch's autograd keeps it (tools/autograd/derivatives.yaml):
//   inputs of Linear, Conv2d, ExpertLinear, Embedding, EmbeddingBag, none of these where frozen;
//   inputs of norms, gelu, silu, Pool2d, Multiply, Attention, PairwiseDots, ExpertCombine, losses
//   but the softmax's;
//   outputs of relu, tanh, sigmoid, Attention;
//   of fixed width: LayerNorm's mean and deviation (8 B a token), RmsNorm's deviation (4),
//   Attention's softmax statistic (4 a token and head [Dao 2022]), MaxPool indices (8), Dropout
//   masks (1), the loss's log-softmax (4: autocast runs it in fp32), ExpertCombine's weight and
//   index of each row (4 + 8).
//   A layer before which nothing is trained, and that is not itself, keeps nothing.
//   A tensor kept twice counts once. Not counted: fp32 copies that autocast makes for norms, and
//   gradients in flight.
//
// [Hoffmann 2022] arXiv:2203.15556, [Chowdhery 2022] PaLM arXiv:2204.02311, [Dao 2022]
// FlashAttention arXiv:2205.14135.
namespace reckon {

/// Weights of the layer, biases included, tied or not. A double: exact below 2^53, and cannot
/// overflow.
double weight_elements(const LayerOp& op);
/// Of those, the part that a tied layer has for itself (the bias).
double untied_elements(const LayerOp& op);

/// Does the backward pass of the layer need what went in, or what came out?
bool keeps_inputs(const LayerOp& op, bool frozen);
bool keeps_output(const LayerOp& op);
/// Passes its input on untouched: the tensor is that of the input.
bool is_view(const LayerOp& op);

/// All but `saved_elements`, which is a matter of the whole graph. `input_has_gradient`: some layer
/// before it is trained.
LayerCount count_layer(const Layer& layer, std::span<const Shape* const> inputs,
                       bool input_has_gradient);

}  // namespace reckon
