#include "sim/queue/trials.h"

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

/// By linear interpolation. Needs a value.
double quantile_of(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  const double at = p * double(values.size() - 1);
  const auto k = static_cast<std::size_t>(at);
  const double next = values[std::min(k + 1, values.size() - 1)];
  return values[k] + (at - double(k)) * (next - values[k]);
}

std::vector<double> looks_of(const TrialsSpec& trials) {
  std::vector<double> looks;
  if (trials.stop == EarlyStopping::none) return looks;
  const double base = trials.stop == EarlyStopping::asha ? trials.eta : 2;
  constexpr double kRounding = 1 - 1e-9;
  for (double share = trials.least; share < kRounding; share *= base) looks.push_back(share);
  return looks;
}

}  // namespace

std::vector<double> shares_of_trials(const TrialsSpec& trials, RandomStream& stream) {
  const std::vector<double> looks = looks_of(trials);
  const bool asha = trials.stop == EarlyStopping::asha;
  const double quantile = asha ? 1 - 1.0 / trials.eta : 0.5;
  std::vector<std::vector<double>> before(looks.size());  // results at each look
  std::vector<double> shares;
  for (int trial = 0; trial < trials.count; ++trial) {
    const double last = stream.normal();
    // All draws of a trial are made, so that where one is stopped moves no draw of the others.
    std::vector<double> seen;
    for (const double share : looks)
      seen.push_back(last + trials.noise * std::sqrt(trials.least / share) * stream.normal());
    double made = 1, sum = 0;
    for (std::size_t k = 0; k < looks.size(); ++k) {
      sum += seen[k];
      const double mean = sum / double(k + 1);
      // The median rule holds the best so far against the others' means.
      const double best = *std::max_element(seen.begin(), seen.begin() + std::ptrdiff_t(k) + 1);
      const double own = asha ? seen[k] : best;
      const bool stops = !before[k].empty() && own < quantile_of(before[k], quantile);
      before[k].push_back(asha ? seen[k] : mean);
      if (!stops) continue;
      made = looks[k];
      break;
    }
    shares.push_back(made);
  }
  return shares;
}

}  // namespace reckon
