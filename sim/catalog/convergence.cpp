#include "sim/catalog/convergence.h"

#include <algorithm>
#include <cmath>

namespace reckon {

Samples samples_to_target(const Convergence& law, std::int64_t global_batch) {
  const double more = law.critical_batch > 0 ? double(global_batch) / law.critical_batch : 0;
  return law.fewest * (1 + more);
}

std::optional<Convergence> convergence_law(std::span<const ConvergencePoint> points) {
  if (points.empty()) return std::nullopt;
  // E = a + c B; the residuals (a + c B) / E - 1 are linear in a and c.
  double a1 = 0, aB = 0, aBB = 0, y1 = 0, yB = 0;
  Convergence law;
  law.accuracy = points.front().accuracy;
  law.smallest_batch = law.largest_batch = points.front().global_batch;
  for (const ConvergencePoint& p : points) {
    const double w = p.runs, e = p.samples.value.v, b = double(p.global_batch);
    a1 += w / (e * e);
    aB += w * b / (e * e);
    aBB += w * b * b / (e * e);
    y1 += w / e;
    yB += w * b / e;
    law.smallest_batch = std::min(law.smallest_batch, p.global_batch);
    law.largest_batch = std::max(law.largest_batch, p.global_batch);
  }
  const double det = a1 * aBB - aB * aB;
  const bool several = law.largest_batch > law.smallest_batch && det > 1e-12 * a1 * aBB;
  const double c = several ? (a1 * yB - aB * y1) / det : 0;
  const double a = several ? (y1 * aBB - yB * aB) / det : 0;
  if (c > 0 && a > 0) {
    law.fewest = Samples{a};
    law.critical_batch = a / c;
  } else {
    law.fewest = Samples{y1 / a1};
  }
  double squares = 0, runs = 0;
  for (const ConvergencePoint& p : points) {
    const double off = std::log(samples_to_target(law, p.global_batch) / p.samples.value);
    squares += p.runs * off * off;
    runs += p.runs;
  }
  law.spread = std::sqrt(squares / runs);
  return law;
}

}  // namespace reckon
