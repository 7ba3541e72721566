#pragma once
#include <span>

#include "sim/catalog/model_graph.h"

// What each kind of layer costs: one rule a kind, all of them in model_counts.cpp. Symbols: T
// tokens, D width, h heads, w head width, n elements of the output of one sample. A multiply-add is
// two FLOPs.
//
// FORWARD
//   Linear               2 in out a row                            [Hoffmann 2022, appendix F]; the
//   bias is not counted Conv2d               2 kh kw (in/groups) out H W               as
//   torchvision's "GFLOPS" (which are MACs: half) Attention            2 T T w h (scores) + 2 T T w
//   h (values)   [Chowdhery 2022, appendix B]; full T x T for a causal
//                        model too, although fused kernels skip half of it: so do the published MFU
//                        figures
//                        + 3 T T h (softmax)                       [Hoffmann 2022, appendix F]
//   BatchNorm, LayerNorm 5 n                                       fvcore, DeepSpeed flops profiler
//   RmsNorm              4 n                                       square, sum, two products
//   Activation, Dropout  n                                         DeepSpeed flops profiler
//   Pool2d               kernel^2 n                                GlobalAveragePool: elements of
//   the input PositionEmbedding, Add, Multiply   n for each input beyond the first (the table
//   counts as one) RotaryEmbedding      3 n                                       x cos + rotate(x)
//   sin SoftmaxCrossEntropy  3 elements of the input InputLayer, Flatten, Embedding, SelectTokens 0
// BACKWARD, what autograd runs
//   Linear, Conv2d       the weights' gradient (1x forward) and the input's (1x), the latter only
//   where some earlier
//                        layer has parameters: the first layer of a network has 1x
//   Attention            2x: each of the two products has two operands. Recomputing the scores
//   inside a fused kernel
//                        is no model FLOP [Chowdhery 2022].
//   Embedding, SelectTokens   n additions (scatter)
//   others               1x forward; 0 where nothing before them has parameters
// BYTES: elements_in/out are activations that a kernel of its own would read and write. BatchNorm
// reads twice (statistics
//   first). Attention is one fused kernel that never writes the T x T scores [Dao 2022]. Flatten
//   and a Dropout of rate 0 move nothing. The loss writes its log-softmax.
// SAVED for the backward pass, as PyTorch's autograd keeps it (tools/autograd/derivatives.yaml):
//   inputs of Linear, Conv2d, norms, gelu, silu, Pool2d, Multiply, Attention, Embedding;
//   outputs of relu, tanh, sigmoid, Attention;
//   fixed width: LayerNorm's mean and deviation (8 B a token), RmsNorm's deviation (4), the softmax
//   statistics of Attention (4 a token and head [Dao 2022]), MaxPool indices (8), Dropout masks
//   (1), log-softmax of the loss (4: autocast runs it in fp32). A tensor kept twice counts once.
//   Not counted: fp32 copies that autocast makes for norms; gradients in flight.
namespace reckon {

/// Weights of the layer, biases included, tied or not. A double: exact below 2^53, and cannot
/// overflow.
double weight_elements(const LayerOp& op);
/// Of those, the part that a tied layer has for itself (the bias).
double untied_elements(const LayerOp& op);

/// Does the backward pass of the layer need what went in, or what came out?
bool keeps_inputs(const LayerOp& op);
bool keeps_output(const LayerOp& op);
/// Passes its input on untouched: the tensor is that of the input.
bool is_view(const LayerOp& op);

/// All but `saved_elements`, which is a matter of the whole graph. `input_has_gradient`: some layer
/// before it has parameters.
LayerCount count_layer(const Layer& layer, std::span<const Shape* const> inputs,
                       bool input_has_gradient);

}  // namespace reckon
