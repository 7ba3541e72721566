#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"
#include "sim/forecast/quantiles.h"

namespace reckon {
namespace {

/// Type 7: position (n - 1) p between order statistics. An infinite neighbour (a run that never
/// finished) is only taken when the position really reaches towards it.
double quantile_of_sorted(const std::vector<double>& sorted, double p) {
  const double position = double(sorted.size() - 1) * p;
  const auto below = static_cast<std::size_t>(position);
  const double fraction = position - double(below);
  if (fraction == 0 || below + 1 == sorted.size()) return sorted[below];
  const double low = sorted[below];
  const double high = sorted[below + 1];
  return low == high ? low : low + fraction * (high - low);
}

}  // namespace

double quantile(std::vector<double> values, double p) {
  RECKON_CHECK(!values.empty() && p >= 0 && p <= 1);
  std::sort(values.begin(), values.end());
  return quantile_of_sorted(values, p);
}

Quantiles quantiles(std::vector<double> values) {
  RECKON_CHECK(!values.empty());
  Quantiles q;
  q.mean = std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
  std::sort(values.begin(), values.end());
  q.p5 = quantile_of_sorted(values, 0.05);
  q.p50 = quantile_of_sorted(values, 0.50);
  q.p95 = quantile_of_sorted(values, 0.95);
  return q;
}

}  // namespace reckon
