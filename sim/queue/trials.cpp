#include "sim/queue/trials.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

namespace reckon {
namespace {

/// A quantile of all values so far, by linear interpolation; O(log n) a value.
class RunningQuantile {
 public:
  explicit RunningQuantile(double p) : p_(p) {}
  bool empty() const { return low_.empty(); }
  /// Needs a value.
  double value() const {
    const double at = p_ * double(low_.size() + high_.size() - 1);
    const double next = high_.empty() ? low_.top() : high_.top();
    return low_.top() + (at - std::floor(at)) * (next - low_.top());
  }
  void add(double x) {
    if (low_.empty() || x <= low_.top())
      low_.push(x);
    else
      high_.push(x);
    const auto below = 1 + std::size_t(p_ * double(low_.size() + high_.size() - 1));
    while (low_.size() > below) high_.push(low_.top()), low_.pop();
    while (low_.size() < below) low_.push(high_.top()), high_.pop();
  }

 private:
  double p_;
  std::priority_queue<double> low_;  // up to the quantile
  std::priority_queue<double, std::vector<double>, std::greater<>> high_;
};

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
  std::vector<RunningQuantile> before(looks.size(), RunningQuantile(quantile));  // at each look
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
      const bool stops = !before[k].empty() && own < before[k].value();
      before[k].add(asha ? seen[k] : mean);
      if (!stops) continue;
      made = looks[k];
      break;
    }
    shares.push_back(made);
  }
  return shares;
}

}  // namespace reckon
