#include "sim/measurement/trial.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "sim/measurement/live_forecast.h"
#include "sim/scenario/resolve/one_worker.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

template <class T>
void scale(Fact<T>& fact, double by, const TrialFit& measured) {
  // A longer step is a lower rate.
  const double value = [&] {
    if constexpr (std::is_same_v<T, double>)
      return fact.value;
    else
      return fact.value.v;
  }();
  if (value <= 0) return;
  const double scaled = value * by;
  const double low = measured.high.count() > 0 ? measured.mean / measured.high : 1;
  const double high = measured.low.count() > 0 ? measured.mean / measured.low : 1;
  fact = Fact<T>(T{scaled}, T{scaled * low}, T{scaled * high}, fact.source);
}
void scale_time(Fact<Seconds>& fact, double by) {
  fact = Fact<Seconds>(fact.value * by, fact.source);
}

/// The worker pool `by` times as fast.
Plan at_speed(const Plan& plan, double by, const TrialFit& measured) {
  Plan scaled = plan;
  for (PlannedPool& pool : scaled.pools) {
    if (!computes(scaled, pool)) continue;
    scale(pool.cpu_flops_per_vcpu, by, measured);
    scale(pool.cpu_memory_bandwidth_per_vcpu, by, measured);
    Efficiency& e = pool.efficiency;
    for (Fact<double>* efficiency : {&e.convolution, &e.matmul, &e.attention, &e.memory})
      scale(*efficiency, by, measured);
    scale_time(e.launch, 1 / by);
    scale_time(e.host, 1 / by);
    scale_time(pool.host_step, 1 / by);
    e.step_spread = Fact<double>{};  // it is measured now
  }
  return scaled;
}

Seconds step_of(const Plan& plan, const NetworkModel& network) {
  const auto alone = one_worker(plan);
  return estimate_step(*alone, alone->only_job(), network).step;
}

}  // namespace

std::size_t warmup_length(std::span<const double> values) {
  const std::size_t n = values.size();
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t cut = std::min<std::size_t>(1, n / 2); cut <= n / 2; ++cut) {
    const auto rest = values.subspan(cut);
    const double count = double(rest.size());
    double mean = 0, squares = 0;
    for (const double v : rest) mean += v;
    mean /= count;
    for (const double v : rest) squares += (v - mean) * (v - mean);
    const double error = squares / (count * count);
    if (error < least) {
      least = error;
      best = cut;
    }
  }
  return best;
}

std::optional<TrialFit> fit_trial(std::span<const double> seconds) {
  TrialFit fit;
  fit.warmup = warmup_length(seconds);
  const auto rest = seconds.subspan(fit.warmup);
  fit.values = rest.size();
  if (fit.values < kLeastTrialSteps) return std::nullopt;
  BlockMeans blocks;
  double mean = 0;
  for (const double s : rest) {
    blocks.add(s);
    mean += s;
  }
  mean /= double(rest.size());
  const std::vector<double>& means = blocks.means();
  double centre = 0, squares = 0;
  const double n = double(means.size());
  for (const double m : means) centre += m / n;
  for (const double m : means) squares += (m - centre) * (m - centre);
  const double t = boost::math::quantile(boost::math::students_t(n - 1), 0.95);
  const double reach = t * std::sqrt(squares / (n - 1) / n);
  fit.mean = Seconds{mean};
  fit.low = Seconds{std::max(0.0, mean - reach)};
  fit.high = Seconds{mean + reach};
  return fit;
}

std::optional<Plan> with_measured_step(const Plan& plan, const NetworkModel& network,
                                       const TrialFit& measured) {
  if (!one_worker(plan)) return std::nullopt;
  // The step falls with the speed: bisection over twelve orders of magnitude, to 1e-9 of it.
  double slow = 1e-6, fast = 1e6;
  if (step_of(at_speed(plan, fast, measured), network) > measured.mean) return std::nullopt;
  if (step_of(at_speed(plan, slow, measured), network) < measured.mean) return std::nullopt;
  while (fast / slow > 1 + 1e-9) {
    const double middle = std::sqrt(slow * fast);
    (step_of(at_speed(plan, middle, measured), network) > measured.mean ? slow : fast) = middle;
  }
  return at_speed(plan, fast, measured);
}

}  // namespace reckon
