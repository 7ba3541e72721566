#pragma once
#include <cstdint>
#include <span>

#include "kernels/reference/layers.h"

// Gradients of kernels/reference/layers.h, differentiated by hand and written as plain loops in
// double: what the backward kernels are held to. All outputs are set, none is added to.
namespace reckon::reference {

using Values = std::span<const double>;
using Gradient = std::span<double>;

/// Layer norm (centred) or root mean square norm; x, dy, dx (rows, width).
void norm_backward(std::int64_t rows, std::int64_t width, bool centred, double epsilon, Values x,
                   Values weight, Values dy, Gradient dx, Gradient dweight, Gradient dbias);
/// By the batch's statistics; x, dy, dx (rows, channels).
void batch_norm_backward(std::int64_t rows, std::int64_t channels, double epsilon, Values x,
                         Values weight, Values dy, Gradient dx, Gradient dweight, Gradient dbias);
/// dx (rows, classes) = slope * (softmax - 1 at the target).
/// `slope`: factor on the loss.
void softmax_cross_entropy_backward(std::int64_t rows, std::int64_t classes, Values x,
                                    std::span<const std::int32_t> target, double slope,
                                    Gradient dx);
/// Of attention(); without ALiBi. `factors`: what each probability is multiplied by behind the
/// softmax, (batch, heads, tokens, seen); empty: nothing.
void attention_with_factors(const AttentionShape& s, Values q, Values k, Values v, Values factors,
                            Gradient y);
void attention_backward(const AttentionShape& s, Values q, Values k, Values v, Values dy,
                        Values factors, Gradient dq, Gradient dk, Gradient dv);

}  // namespace reckon::reference
