#pragma once
#include <cstdint>
#include <span>

#include "kernels/reference/backward.h"

// What a mixture of experts makes of the rows that its experts made, and its gradients, as plain
// loops in double: what kernels/experts.h is held to. All outputs are set, none is added to.
namespace reckon::reference {

/// chosen (tokens, top_k): experts of each token, none twice.
struct Mixture {
  std::int64_t tokens = 1, experts = 1, top_k = 1, width = 1;
  bool normalize = true;  // weights are a softmax over the chosen, or over all
  std::span<const std::int32_t> chosen;
};

/// y (tokens, width) = sum over k of weight[t, k] x[t, k], x (tokens, top_k, width), weights of
/// scores (tokens, experts) [Shazeer 2017, arXiv:1701.06538, eq. 1 and 3].
void combine(const Mixture& m, Values scores, Values x, Gradient y);
void combine_backward(const Mixture& m, Values scores, Values x, Values dy, Gradient dscores,
                      Gradient dx);

}  // namespace reckon::reference
