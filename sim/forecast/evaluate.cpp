#include <cmath>

#include "sim/base/check.h"
#include "sim/forecast/forecast.h"

namespace reckon {
namespace {

double pick(const Quantiles& q, Statistic statistic) {
  switch (statistic) {
    case Statistic::none:
    case Statistic::mean:
      return q.mean;
    case Statistic::p5:
      return q.p5;
    case Statistic::p50:
      return q.p50;
    case Statistic::p95:
      return q.p95;
    case Statistic::p99:
      break;  // of latencies only
  }
  RECKON_CHECK(false);
  return 0;
}

double share_of_step(const StepEstimate& step, StepShare share) {
  if (step.step.count() <= 0) return 0;
  switch (share) {
    case StepShare::communication:
      return step.exposed_communication / step.step;
    case StepShare::compute:
      return step.compute / step.step;
    case StepShare::input:
      return step.exposed_input / step.step;
    case StepShare::bubble:
      return step.bubble / step.step;
  }
  RECKON_CHECK(false);
  return 0;
}

std::optional<double> value_of(const Expectation& e, const Forecast& f) {
  switch (e.metric) {
    case Metric::feasible:
      return f.feasible ? 1.0 : 0.0;
    case Metric::memory:
      return f.memory.required().v;
    case Metric::time:
      return pick(f.time_seconds, e.statistic);
    case Metric::cost:
      return f.cost_usd ? std::optional(pick(*f.cost_usd, e.statistic)) : std::nullopt;
    case Metric::goodput:
      return pick(f.goodput, e.statistic);
    case Metric::interruptions:
      return pick(f.interruptions_total, e.statistic);
    case Metric::energy:
      return f.energy ? std::optional(pick(f.energy->joules, e.statistic)) : std::nullopt;
    case Metric::co2:
      return f.energy && f.energy->co2_grams
                 ? std::optional(pick(*f.energy->co2_grams, e.statistic))
                 : std::nullopt;
    case Metric::samples_per_second:
      return f.step.samples_per_second.v;
    case Metric::tokens_per_second:
      if (f.tokens_per_sample == 0) return std::nullopt;
      return f.step.samples_per_second.v * double(f.tokens_per_sample);
    case Metric::tokens_per_second_per_accelerator:
      if (f.tokens_per_sample == 0 || f.accelerators == 0) return std::nullopt;
      return f.step.samples_per_second.v * double(f.tokens_per_sample) / f.accelerators;
    case Metric::step_seconds:
      return f.step.step.count();
    case Metric::step_mfu:
      return f.step.mfu > 0 ? std::optional(f.step.mfu) : std::nullopt;
    case Metric::step_share:
      return share_of_step(f.step, e.share);
    case Metric::latency:
    case Metric::serving_cost:
    case Metric::serving_replicas:
    case Metric::serving_utilization:
    case Metric::serving_requests_per_second:
    case Metric::serving_rejected:
    case Metric::wait:
    case Metric::jct:
    case Metric::slowdown:
    case Metric::fairness:
    case Metric::preemptions:
    case Metric::makespan:
    case Metric::utilization:
    case Metric::allocation:
    case Metric::fragmentation:
      break;  // is_of_serving: sim/serving answers; is_of_trace: sim/queue
  }
  RECKON_CHECK(false);
  return std::nullopt;
}

const char* why_unknown(Metric metric) {
  if (metric == Metric::step_mfu)
    return "the workers have no accelerators, whose peak MFU is a share of";
  if (metric == Metric::tokens_per_second || metric == Metric::tokens_per_second_per_accelerator)
    return "the model reads no tokens: samples_per_second";
  if (metric == Metric::energy) return "the power of an accelerator is not known";
  if (metric == Metric::co2)
    return "the power of an accelerator, or the region's grid (catalogs/regions.csv), is not known";
  return "a price is unknown";
}

}  // namespace

ExpectationResult evaluate(const Expectation& expectation, const Forecast& forecast) {
  ExpectationResult result{expectation.text, std::nullopt, false, ""};
  if (is_of_serving(expectation.metric)) {
    result.reason = "the scenario serves nothing: it has no serving block";
    return result;
  }
  if (is_of_trace(expectation.metric)) {
    result.reason = "the scenario has no trace and no arrivals";
    return result;
  }
  const bool needs_a_life =
      expectation.metric != Metric::feasible && expectation.metric != Metric::memory;
  if (!forecast.feasible && needs_a_life) {
    result.reason = "the plan does not fit in memory, so it was not simulated";
    return result;
  }
  const std::optional<double> value = value_of(expectation, forecast);
  if (!value) {
    result.reason = why_unknown(expectation.metric);
    return result;
  }
  if (!std::isfinite(*value)) {
    result.reason = "replications never finished: " + forecast.unfinished_reason;
    return result;
  }
  result.value = value;
  result.passed = holds(*value, expectation.comparison, expectation.value);
  return result;
}

}  // namespace reckon
