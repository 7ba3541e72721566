#include "sim/catalog/convergence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "sim/catalog/convergence_laws.h"

namespace reckon {
namespace {

/// How far points lie from their law, of the logarithm, and how many of them are free to.
struct Residuals {
  double squares = 0;
  std::int64_t freedom = 0;
};

Residuals residuals_of(const Convergence& law, std::span<const ConvergencePoint> points) {
  Residuals r;
  for (const ConvergencePoint& p : points) {
    const double off = std::log(samples_to_target(law, p.global_batch) / p.samples.value);
    r.squares += off * off;
  }
  // Two numbers of the law are fitted; a constant whose slope was looked for has cost one too.
  const std::int64_t fitted = points.size() > 1 ? 2 : 1;
  r.freedom = std::int64_t(points.size()) - fitted;
  return r;
}

double spread_of(const Residuals& r) {
  return r.freedom > 0 ? std::sqrt(r.squares / double(r.freedom)) : 0;
}

constexpr double kScoreOfP95 = 1.6448536269514722;  // standard normal quantile of 0.95

/// Standard deviation of the logarithm of a submission's single runs, whose 95th percentile the
/// points' upper end is: the root of the mean square over points.
double spread_of_runs(std::span<const ConvergencePoint> points) {
  double squares = 0;
  for (const ConvergencePoint& p : points) {
    const double one = std::log(p.samples.high / p.samples.value) / kScoreOfP95;
    squares += one * one;
  }
  return std::sqrt(squares / double(points.size()));
}

using Group = std::tuple<std::string_view, std::string_view, double, std::string_view,
                         std::int64_t>;  // model, dataset, target, start, sequence length

std::map<Group, std::vector<ConvergencePoint>> groups_of(std::span<const ConvergencePoint> points) {
  std::map<Group, std::vector<ConvergencePoint>> groups;
  for (const ConvergencePoint& p : points)
    groups[{p.model, p.dataset, p.accuracy, p.starts_from, p.sequence_length}].push_back(p);
  return groups;
}

}  // namespace

Samples samples_to_target(const Convergence& law, std::int64_t global_batch) {
  return delayed_samples_to_target(law, double(global_batch), 0);
}

Samples delayed_samples_to_target(const Convergence& law, double batch, double delay) {
  const double more = law.critical_batch > 0 ? (1 + delay) * batch / law.critical_batch : 0;
  return law.fewest * (1 + more);
}

Fact<double> spread_of(const Convergence& law) {
  const double end = std::exp(kScoreOfP95 * law.spread);
  return {1.0, 1 / end, end, law.source};
}

std::optional<Convergence> convergence_law(std::span<const ConvergencePoint> points) {
  if (points.empty()) return std::nullopt;
  // E = a + c B; the residuals (a + c B) / E - 1 are linear in a and c.
  double a1 = 0, aB = 0, aBB = 0, y1 = 0, yB = 0;
  Convergence law;
  law.accuracy = points.front().accuracy;
  law.starts_from = points.front().starts_from;
  law.sequence_length = points.front().sequence_length;
  law.source = points.front().samples.source;
  law.smallest_batch = law.largest_batch = points.front().global_batch;
  for (const ConvergencePoint& p : points) {
    const double e = p.samples.value.v, b = double(p.global_batch);
    a1 += 1 / (e * e);
    aB += b / (e * e);
    aBB += b * b / (e * e);
    y1 += 1 / e;
    yB += b / e;
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
  law.spread = std::hypot(spread_of(residuals_of(law, points)), spread_of_runs(points));
  return law;
}

std::vector<Convergence> convergence_laws(std::span<const ConvergencePoint> points,
                                          std::string_view model, std::string_view dataset) {
  struct OfFewBatches {
    std::size_t law;
    double around_it, of_runs;
  };
  std::vector<Convergence> laws;
  std::vector<OfFewBatches> few;
  Residuals all;
  for (const auto& [key, alike] : groups_of(points)) {
    Convergence law = *convergence_law(alike);
    const Residuals residuals = residuals_of(law, alike);
    all.squares += residuals.squares;
    all.freedom += residuals.freedom;
    if (std::get<0>(key) != model || std::get<1>(key) != dataset) continue;
    if (alike.size() < kBatchesOfOwnSpread)
      few.push_back({laws.size(), spread_of(residuals), spread_of_runs(alike)});
    laws.push_back(std::move(law));
  }
  for (const OfFewBatches& f : few)
    laws[f.law].spread = std::hypot(std::max(f.around_it, spread_of(all)), f.of_runs);
  return laws;
}

bool is_measured_at(const Convergence& law, std::int64_t global_batch) {
  return law.smallest_batch <= global_batch && global_batch <= law.largest_batch;
}

}  // namespace reckon
