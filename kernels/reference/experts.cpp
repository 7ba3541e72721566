#include "kernels/reference/experts.h"

#include <cmath>
#include <vector>

namespace reckon::reference {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Of a token: by expert, zero for those that do not count.
std::vector<double> softmax_of_token(const Mixture& m, Values scores, std::int64_t t) {
  std::vector<double> p(at(m.experts), m.normalize ? 0.0 : 1.0);
  for (std::int64_t k = 0; k < m.top_k; ++k) p[at(m.chosen[at(t * m.top_k + k)])] = 1;
  double sum = 0;
  for (std::int64_t e = 0; e < m.experts; ++e) {
    p[at(e)] *= std::exp(scores[at(t * m.experts + e)]);
    sum += p[at(e)];
  }
  for (double& x : p) x /= sum;
  return p;
}

}  // namespace

void combine(const Mixture& m, Values scores, Values x, Gradient y) {
  for (std::int64_t t = 0; t < m.tokens; ++t) {
    const std::vector<double> p = softmax_of_token(m, scores, t);
    for (std::int64_t j = 0; j < m.width; ++j) {
      double sum = 0;
      for (std::int64_t slot = t * m.top_k; slot < (t + 1) * m.top_k; ++slot)
        sum += p[at(m.chosen[at(slot)])] * x[at(slot * m.width + j)];
      y[at(t * m.width + j)] = sum;
    }
  }
}

void combine_backward(const Mixture& m, Values scores, Values x, Values dy, Gradient dscores,
                      Gradient dx) {
  for (std::int64_t t = 0; t < m.tokens; ++t) {
    const std::vector<double> p = softmax_of_token(m, scores, t);
    std::vector<double> slopes(p.size());  // of the weights
    for (std::int64_t slot = t * m.top_k; slot < (t + 1) * m.top_k; ++slot) {
      const std::size_t e = at(m.chosen[at(slot)]);
      for (std::int64_t j = 0; j < m.width; ++j) {
        const double slope = dy[at(t * m.width + j)];
        slopes[e] += slope * x[at(slot * m.width + j)];
        dx[at(slot * m.width + j)] = p[e] * slope;
      }
    }
    // d p[i] / d score[e] = p[i] ((i == e) - p[e])
    for (std::size_t e = 0; e < p.size(); ++e) {
      double sum = 0;
      for (std::size_t i = 0; i < p.size(); ++i)
        sum += slopes[i] * p[i] * ((i == e ? 1.0 : 0.0) - p[e]);
      dscores[at(t * m.experts) + e] = sum;
    }
  }
}

}  // namespace reckon::reference
