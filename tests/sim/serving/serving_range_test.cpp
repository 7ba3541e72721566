#include "sim/serving/serving_range.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

ServingPlan plan_of(const std::vector<std::string>& overrides = {}) {
  const auto file = parse_scenario(
      "serving:\n"
      "  model: resnet50_v1_5\n"
      "  precision: fp16\n"
      "  requests_per_second: 100\n"
      "  batch: {max: 8, wait: 2ms}\n"
      "  replicas: 2\n"
      "  period: 5min\n"
      "cluster:\n"
      "  provider: gcp\n"
      "  region: us-central1\n"
      "  pools:\n"
      "    - {name: t4, role: inference, machine: n1-standard-8, accelerator: {type: T4, count: "
      "2}, "
      "nodes: 2}\n",
      "s.yaml", overrides);
  if (!file) FAIL(format(file.error()));
  auto plan = make_serving_plan(*file, test::shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  return std::move(*plan);
}

}  // namespace

TEST_CASE("a service has a range where what a batch takes is assumed") {
  const ServingPlan plan = plan_of();
  const ServingForecast said = forecast_serving(plan);
  const auto range = serving_range(plan);
  REQUIRE(range);
  CHECK(range->fast.batch_full < said.batch_full);
  CHECK(range->slow.batch_full > said.batch_full);
  CHECK(range->fast.p99 < said.p99);
  CHECK(range->slow.p99 > said.p99);
  // One number alone reaches its own end; with others beside it the range is at least as wide.
  const Fact<double>& spread = plan.pool().efficiency.step_spread;
  CHECK(range->slow.batch_full.count() >= 0.7 * spread.high * said.batch_full.count());
  const auto again = serving_range(plan);
  CHECK(again->slow.p99 == range->slow.p99);
}

TEST_CASE("an assumed number alone moves a batch to the ends of its own range") {
  ServingPlan plan = plan_of();
  for (const auto& a : assumptions_of_pass(plan.cluster, 0, plan.model, plan.precision))
    if (!a.key.ends_with("step_spread")) a.set(plan.cluster, a.value);  // known: no range
  const Fact<double> spread = plan.pool().efficiency.step_spread;
  REQUIRE(spread.high > 1.1);
  const auto range = serving_range(plan);
  REQUIRE(range);
  ServingPlan slow = plan;
  slow.cluster.pools.front().efficiency.step_spread.value = spread.high;
  CHECK(range->slow.batch_full.count() == Approx(batch_time(slow, 8).count()));
}

TEST_CASE("a server that was measured has no range") {
  CHECK_FALSE(serving_range(plan_of({"serving.batch.times={1: 2ms, 8: 7ms}"})));
  CHECK_FALSE(serving_range(plan_of({"serving.stack=measured", "serving.overhead.request=3ms"})));
}
