#include "kernels/reference/backward.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace reckon::reference {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Where one vector that is normalised lies: element i at first + i * step.
struct Line {
  std::int64_t first, step, count;
  std::size_t operator[](std::int64_t i) const { return at(first + i * step); }
};

/// Normalised values of a line, and what they were multiplied by.
struct Normal {
  std::vector<double> values;
  double inverse = 0;
};
Normal normalise(Values x, const Line& line, bool centred, double epsilon) {
  const auto count = static_cast<double>(line.count);
  double mean = 0, square = 0;
  if (centred)
    for (std::int64_t i = 0; i < line.count; ++i) mean += x[line[i]] / count;
  for (std::int64_t i = 0; i < line.count; ++i)
    square += (x[line[i]] - mean) * (x[line[i]] - mean) / count;
  Normal normal{.values = {}, .inverse = 1 / std::sqrt(square + epsilon)};
  for (std::int64_t i = 0; i < line.count; ++i)
    normal.values.push_back((x[line[i]] - mean) * normal.inverse);
  return normal;
}

/// dx = inverse (g - mean(g) - normal mean(g normal)): the Jacobian of normalise() times g.
void normalise_backward(const Normal& normal, const Line& line, bool centred,
                        const std::vector<double>& g, Gradient dx) {
  const auto count = static_cast<double>(line.count);
  double sum = 0, along = 0;
  for (std::int64_t i = 0; i < line.count; ++i) {
    if (centred) sum += g[at(i)] / count;
    along += g[at(i)] * normal.values[at(i)] / count;
  }
  for (std::int64_t i = 0; i < line.count; ++i)
    dx[line[i]] = normal.inverse * (g[at(i)] - sum - normal.values[at(i)] * along);
}

/// Probabilities of a row of scores; hidden ones are zero.
std::vector<double> probabilities(const AttentionShape& s, Values q, Values k, std::int64_t q_at,
                                  std::int64_t b, std::int64_t kv_head, std::int64_t t) {
  std::vector<double> p(at(s.seen));
  double sum = 0;
  for (std::int64_t u = 0; u < s.seen; ++u) {
    if ((s.causal && u > t) || (s.window > 0 && u <= t - s.window)) continue;
    double dot = 0;
    for (std::int64_t i = 0; i < s.head_width; ++i)
      dot += q[at(q_at + i)] * k[at(((b * s.seen + u) * s.kv_heads + kv_head) * s.head_width + i)];
    p[at(u)] = std::exp(dot / std::sqrt(static_cast<double>(s.head_width)));
    sum += p[at(u)];
  }
  for (double& value : p) value /= sum;
  return p;
}

struct Row {
  std::int64_t b, kv_head, q_at, score_at;
  std::vector<double> p;
};
template <class Body>
void for_rows(const AttentionShape& s, Values q, Values k, Body body) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t t = 0; t < s.tokens; ++t) {
        Row row{.b = b,
                .kv_head = h / (s.heads / s.kv_heads),
                .q_at = ((b * s.tokens + t) * s.heads + h) * s.head_width,
                .score_at = ((b * s.heads + h) * s.tokens + t) * s.seen,
                .p = {}};
        row.p = probabilities(s, q, k, row.q_at, b, row.kv_head, t);
        body(row);
      }
}
double factor_of(Values factors, std::int64_t i) { return factors.empty() ? 1 : factors[at(i)]; }

}  // namespace

void norm_backward(std::int64_t rows, std::int64_t width, bool centred, double epsilon, Values x,
                   Values weight, Values dy, Gradient dx, Gradient dweight, Gradient dbias) {
  std::ranges::fill(dweight, 0.0);
  std::ranges::fill(dbias, 0.0);
  std::vector<double> g(at(width));
  for (std::int64_t r = 0; r < rows; ++r) {
    const Line line{r * width, 1, width};
    const Normal normal = normalise(x, line, centred, epsilon);
    for (std::int64_t j = 0; j < width; ++j) {
      g[at(j)] = dy[line[j]] * weight[at(j)];
      dweight[at(j)] += dy[line[j]] * normal.values[at(j)];
      dbias[at(j)] += dy[line[j]];
    }
    normalise_backward(normal, line, centred, g, dx);
  }
}

void batch_norm_backward(std::int64_t rows, std::int64_t channels, double epsilon, Values x,
                         Values weight, Values dy, Gradient dx, Gradient dweight, Gradient dbias) {
  std::vector<double> g(at(rows));
  for (std::int64_t c = 0; c < channels; ++c) {
    const Line line{c, channels, rows};
    const Normal normal = normalise(x, line, true, epsilon);
    dweight[at(c)] = dbias[at(c)] = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      g[at(r)] = dy[line[r]] * weight[at(c)];
      dweight[at(c)] += dy[line[r]] * normal.values[at(r)];
      dbias[at(c)] += dy[line[r]];
    }
    normalise_backward(normal, line, true, g, dx);
  }
}

void softmax_cross_entropy_backward(std::int64_t rows, std::int64_t classes, Values x,
                                    std::span<const std::int32_t> target, double slope,
                                    Gradient dx) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const Values row = x.subspan(at(r * classes), at(classes));
    const double largest = *std::ranges::max_element(row);
    double sum = 0;
    for (const double value : row) sum += std::exp(value - largest);
    for (std::int64_t j = 0; j < classes; ++j)
      dx[at(r * classes + j)] =
          slope * (std::exp(row[at(j)] - largest) / sum - (target[at(r)] == j ? 1.0 : 0.0));
  }
}

void attention_with_factors(const AttentionShape& s, Values q, Values k, Values v, Values factors,
                            Gradient y) {
  const std::int64_t w = s.head_width;
  for_rows(s, q, k, [&](const Row& row) {
    for (std::int64_t i = 0; i < w; ++i) y[at(row.q_at + i)] = 0;
    for (std::int64_t u = 0; u < s.seen; ++u) {
      const double p = row.p[at(u)] * factor_of(factors, row.score_at + u);
      const std::int64_t kv = ((row.b * s.seen + u) * s.kv_heads + row.kv_head) * w;
      for (std::int64_t i = 0; i < w; ++i) y[at(row.q_at + i)] += p * v[at(kv + i)];
    }
  });
}

void attention_backward(const AttentionShape& s, Values q, Values k, Values v, Values dy,
                        Values factors, Gradient dq, Gradient dk, Gradient dv) {
  const std::int64_t w = s.head_width;
  const double scale = 1 / std::sqrt(static_cast<double>(w));
  for (const Gradient g : {dq, dk, dv}) std::ranges::fill(g, 0.0);
  for_rows(s, q, k, [&](const Row& row) {
    std::vector<double> slope(at(s.seen));  // of each probability
    double along = 0;
    for (std::int64_t u = 0; u < s.seen; ++u) {
      const std::int64_t kv = ((row.b * s.seen + u) * s.kv_heads + row.kv_head) * w;
      const double factor = factor_of(factors, row.score_at + u);
      for (std::int64_t i = 0; i < w; ++i) {
        slope[at(u)] += factor * dy[at(row.q_at + i)] * v[at(kv + i)];
        dv[at(kv + i)] += row.p[at(u)] * factor * dy[at(row.q_at + i)];
      }
      along += row.p[at(u)] * slope[at(u)];
    }
    for (std::int64_t u = 0; u < s.seen; ++u) {
      const std::int64_t kv = ((row.b * s.seen + u) * s.kv_heads + row.kv_head) * w;
      const double ds = scale * row.p[at(u)] * (slope[at(u)] - along);
      for (std::int64_t i = 0; i < w; ++i) {
        dq[at(row.q_at + i)] += ds * k[at(kv + i)];
        dk[at(kv + i)] += ds * q[at(row.q_at + i)];
      }
    }
  });
}

}  // namespace reckon::reference
