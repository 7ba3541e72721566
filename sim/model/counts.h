#pragma once
#include <span>

#include "sim/model/graph.h"

// What each layer costs. The rule of each kind, its FLOPs of a forward pass and what it keeps,
// stand in its family's file (sim/model/families/); here is what holds for all. T tokens, n
// elements of one sample's output. A multiply-add is two FLOPs.
//
// FORWARD: 0 where a kind's rule says nothing. Attention counts the full T x T for a causal model
// too.
//
// BACKWARD, what autograd runs
//   products with weights   the weights' gradient (1x forward) and the input's (1x); the latter
//                           only where some earlier layer has parameters: a network's first
//                           layer has 1x
//   others                  1x forward; 0 where nothing before them is trained
//   A frozen layer          no gradient of its weights: 1x, where something before it is trained
//
// BYTES: elements_in and elements_out are activations that a kernel of its own reads and writes.
//
// SAVED for the backward pass, as PyTorch's autograd keeps it (tools/autograd/derivatives.yaml).
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
