#include <catch2/catch.hpp>
#include <limits>

#include "sim/forecast/forecast.h"

using namespace reckon;

namespace {

Forecast evaluate_forecast() {
  using namespace std::chrono_literals;
  Forecast f;
  f.time_seconds = {10, 5, 9, 20};
  f.cost_usd = Quantiles{100, 50, 90, 200};
  f.goodput = {0.8, 0.7, 0.81, 0.9};
  f.interruptions_total = {2.5, 0, 2, 6};
  f.step.step = 2s;
  f.step.compute = 1s;
  f.step.exposed_communication = 500ms;
  f.step.exposed_input = 250ms;
  f.step.bubble = 100ms;
  f.step.mfu = 0.4;
  f.step.samples_per_second = SamplesPerSecond{128};
  f.memory.parameters = Bytes{3e9};
  f.memory.available = Bytes{16e9};
  return f;
}

Expectation expect(Metric metric, Statistic statistic, Comparison comparison, double value) {
  Expectation e;
  e.text = "text";
  e.metric = metric;
  e.statistic = statistic;
  e.comparison = comparison;
  e.value = value;
  return e;
}

double value(Metric metric, Statistic statistic = Statistic::none) {
  return evaluate(expect(metric, statistic, Comparison::le, 0), evaluate_forecast()).value.value();
}

bool holds(Comparison comparison, double bound) {  // against a mean time of 10 s
  return evaluate(expect(Metric::time, Statistic::mean, comparison, bound), evaluate_forecast())
      .passed;
}

}  // namespace

TEST_CASE("every metric of an expectation has its value in the forecast") {
  CHECK(value(Metric::time, Statistic::mean) == 10);
  CHECK(value(Metric::time, Statistic::p5) == 5);
  CHECK(value(Metric::time, Statistic::p50) == 9);
  CHECK(value(Metric::time, Statistic::p95) == 20);
  CHECK(value(Metric::cost, Statistic::p95) == 200);
  CHECK(value(Metric::goodput, Statistic::p5) == 0.7);
  CHECK(value(Metric::interruptions, Statistic::p95) == 6);
  CHECK(value(Metric::samples_per_second) == 128);
  CHECK(value(Metric::memory) == 3e9);
  CHECK(value(Metric::step_seconds) == 2);
  CHECK(value(Metric::step_mfu) == 0.4);
  CHECK(value(Metric::feasible) == 1);
}

TEST_CASE("an expectation of MFU fails where there is none, and says why") {
  Forecast f = evaluate_forecast();
  f.step.mfu = 0;
  const auto result = evaluate(expect(Metric::step_mfu, Statistic::none, Comparison::ge, 0), f);
  CHECK_FALSE(result.passed);
  CHECK_FALSE(result.value);
  CHECK(result.reason == "the workers have no accelerators, whose peak MFU is a share of");
}

TEST_CASE("rates of tokens are those of samples times their length, and none of other models") {
  Forecast f = evaluate_forecast();
  const auto rate = [&](Metric metric) {
    return evaluate(expect(metric, Statistic::none, Comparison::ge, 0), f);
  };
  CHECK(rate(Metric::tokens_per_second).reason == "the model reads no tokens: samples_per_second");
  f.tokens_per_sample = 512;
  f.accelerators = 4;
  CHECK(rate(Metric::tokens_per_second).value == 128 * 512);
  CHECK(rate(Metric::tokens_per_second_per_accelerator).value == 32 * 512);
}

TEST_CASE("the shares of a step are exposed times over the step time") {
  Expectation e = expect(Metric::step_share, Statistic::none, Comparison::le, 1);
  const auto share = [&](StepShare s) {
    e.share = s;
    return evaluate(e, evaluate_forecast()).value.value();
  };
  CHECK(share(StepShare::compute) == 0.5);
  CHECK(share(StepShare::communication) == 0.25);
  CHECK(share(StepShare::input) == 0.125);
  CHECK(share(StepShare::bubble) == 0.05);
}

TEST_CASE("comparisons hold on their own side of the bound only") {
  CHECK(holds(Comparison::le, 10));
  CHECK_FALSE(holds(Comparison::le, 9.9));
  CHECK(holds(Comparison::ge, 10));
  CHECK_FALSE(holds(Comparison::ge, 10.1));
  CHECK_FALSE(holds(Comparison::lt, 10));
  CHECK(holds(Comparison::lt, 10.1));
  CHECK_FALSE(holds(Comparison::gt, 10));
  CHECK(holds(Comparison::gt, 9.9));
  CHECK(holds(Comparison::eq, 10));
  CHECK_FALSE(holds(Comparison::eq, 11));
  CHECK(holds(Comparison::ne, 11));
  CHECK_FALSE(holds(Comparison::ne, 10));
}

TEST_CASE("an unknown cost fails an expectation and says why") {
  Forecast f = evaluate_forecast();
  f.cost_usd.reset();
  const ExpectationResult r = evaluate(expect(Metric::cost, Statistic::mean, Comparison::ge, 0), f);
  CHECK_FALSE(r.passed);
  CHECK_FALSE(r.value);
  CHECK(r.reason == "a price is unknown");
}

TEST_CASE("a time that reaches runs which never finished fails even where more is asked for") {
  Forecast f = evaluate_forecast();
  f.time_seconds.p95 = std::numeric_limits<double>::infinity();
  f.unfinished_reason = "backoff limit";
  const ExpectationResult r = evaluate(expect(Metric::time, Statistic::p95, Comparison::ge, 1), f);
  CHECK_FALSE(r.passed);
  CHECK(r.reason.find("backoff limit") != std::string::npos);
}

TEST_CASE("a plan that does not fit answers questions about memory and feasibility only") {
  Forecast f = evaluate_forecast();
  f.feasible = false;
  CHECK(evaluate(expect(Metric::feasible, Statistic::none, Comparison::eq, 0), f).passed);
  CHECK_FALSE(evaluate(expect(Metric::feasible, Statistic::none, Comparison::eq, 1), f).passed);
  CHECK(evaluate(expect(Metric::memory, Statistic::none, Comparison::gt, 1e9), f).passed);
  const ExpectationResult r = evaluate(expect(Metric::time, Statistic::mean, Comparison::ge, 0), f);
  CHECK_FALSE(r.passed);
  CHECK(r.reason.find("does not fit") != std::string::npos);
}

TEST_CASE("energy and CO2 are held to a limit like cost, and fail where they are not known") {
  Forecast f = evaluate_forecast();
  CHECK(evaluate(expect(Metric::co2, Statistic::mean, Comparison::le, 1e9), f).reason ==
        "the power of an accelerator, or the region's grid (catalogs/regions.csv), is not known");
  EnergyForecast e;
  e.joules = {100, 50, 90, 200};
  f.energy = e;
  CHECK(evaluate(expect(Metric::energy, Statistic::p95, Comparison::le, 200), f).passed);
  CHECK_FALSE(evaluate(expect(Metric::co2, Statistic::mean, Comparison::le, 1e9), f).passed);
  f.energy->co2_grams = Quantiles{10, 5, 9, 20};
  CHECK(evaluate(expect(Metric::co2, Statistic::p50, Comparison::lt, 10), f).passed);
  CHECK(parse_expectation("p95(co2) <= 2t").value().value == 2e6);
  CHECK(parse_expectation("energy <= 5MWh").value().value == 1.8e10);
}
