#include <optional>

#include "sim/base/check.h"
#include "sim/forecast/forecast.h"
#include "sim/serving/serving.h"

namespace reckon {
namespace {

double pick_served(const ServingForecast& f, Statistic statistic) {
  switch (statistic) {
    case Statistic::none:
    case Statistic::mean:
      return f.mean.count();
    case Statistic::p5:
      return f.service.latency.quantile(0.05).count();
    case Statistic::p50:
      return f.p50.count();
    case Statistic::p95:
      return f.p95.count();
    case Statistic::p99:
      return f.p99.count();
  }
  RECKON_CHECK(false);
  return 0;
}

std::optional<double> served_value_of(const Expectation& e, const ServingForecast& f) {
  switch (e.metric) {
    case Metric::latency:
      return f.service.latency.count() > 0 ? std::optional(pick_served(f, e.statistic))
                                           : std::nullopt;
    case Metric::serving_cost:
      return f.cost_usd;
    case Metric::serving_replicas:
      return f.replicas;
    case Metric::serving_utilization:
      return f.service.utilization();
    case Metric::serving_requests_per_second:
      return f.requests_per_second;
    case Metric::serving_rejected:
      return f.refused_share;
    default:
      return std::nullopt;
  }
}

}  // namespace

ExpectationResult evaluate(const Expectation& expectation, const ServingForecast& forecast) {
  ExpectationResult result{expectation.text, std::nullopt, false, ""};
  if (!is_of_serving(expectation.metric)) {
    result.reason = "the scenario trains nothing";
    return result;
  }
  result.value = served_value_of(expectation, forecast);
  if (!result.value)
    result.reason = expectation.metric == Metric::serving_cost ? "a price is unknown"
                                                               : "no request was answered";
  else
    result.passed = holds(*result.value, expectation.comparison, expectation.value);
  return result;
}

}  // namespace reckon
