#include "planner/serving.h"

#include <catch2/catch.hpp>

#include "sim/scenario/scenario_yaml.h"
#include "sim/scenario/training_text.h"
#include "support/shipped_catalog.h"

using namespace reckon;
using namespace reckon::planner;
using test::shipped_catalog;

namespace {

const std::string kQuestion = R"(
serving:
  model: resnet50_v1_5
  precision: fp16
  requests_per_second: 600
  batch: {max: 8, wait: 2ms}
  routing: least_requests
  goal: p99(latency) <= 50ms
cluster:
  provider: gcp
  region: us-central1
  zone: us-central1-a
  pools:
    - {name: serving, role: inference, machine: n1-standard-4, accelerator: {type: T4}, nodes: 1}
)";

ScenarioFile file_of(const std::vector<std::string>& overrides = {},
                     const std::string& text = kQuestion) {
  auto file = parse_scenario(text, "s.yaml", overrides);
  if (!file) FAIL(format(file.error()));
  return std::move(*file);
}

ServingAnswer answer_of(const std::vector<std::string>& overrides = {},
                        const ServingQuestion& question = {}) {
  auto answer = plan_serving(file_of(overrides), shipped_catalog(), question);
  if (!answer) FAIL(format(answer.error()));
  return std::move(*answer);
}

}  // namespace

TEST_CASE("the choices hold the goal, cheapest first, one an accelerator") {
  const ServingAnswer answer = answer_of();
  REQUIRE(answer.choices.size() >= 2);
  for (std::size_t k = 0; k < answer.choices.size(); ++k) {
    const ServingChoice& c = answer.choices[k];
    CHECK(c.forecast.p99.count() <= 0.050);
    CHECK(c.forecast.refused_share == 0);
    CHECK(c.nodes * c.per_node >= c.replicas);
    if (k == 0) continue;
    CHECK(answer.choices[k - 1].usd_per_hour <= c.usd_per_hour);
    CHECK(answer.choices[k - 1].accelerator != c.accelerator);
  }
}

TEST_CASE("one replica fewer does not hold the goal") {
  const ServingAnswer answer = answer_of({}, {.keep = 1, .accelerators = {"T4"}});
  REQUIRE(answer.choices.size() == 1);
  const ServingChoice& best = answer.choices.front();
  REQUIRE(best.replicas > 1);
  const std::string fewer = std::to_string(best.replicas - 1);
  // The same machine, the same seed, as long as a try is.
  const auto plan = make_serving_plan(
      file_of({"serving.replicas=" + fewer, "cluster.pools.serving.machine=" + best.machine,
               "cluster.pools.serving.accelerator.count=" + std::to_string(best.per_node),
               "cluster.pools.serving.nodes=" + fewer, "serving.period=334s"}),
      shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  const ServingForecast forecast = forecast_serving(*plan);
  CHECK((forecast.p99.count() > 0.050 || forecast.refused_share > 0));
}

TEST_CASE("a tighter goal never costs less, a higher rate never less either") {
  const double base = answer_of().choices.front().usd_per_hour;
  CHECK(answer_of({"serving.goal=p99(latency) <= 25ms"}).choices.front().usd_per_hour >= base);
  CHECK(answer_of({"serving.requests_per_second=1200"}).choices.front().usd_per_hour >= base);
}

TEST_CASE("a goal that no pass is fast enough for has no answer, and says why") {
  const ServingAnswer answer = answer_of({"serving.goal=p99(latency) <= 10us"});
  CHECK(answer.choices.empty());
  CHECK(answer.rejected.contains("one request alone takes longer than the goal"));
}

TEST_CASE("the training alone has neither the serving block nor its pool") {
  const std::string both =
      kQuestion +
      "    - {name: a100, role: worker, machine: a2-highgpu-1g, nodes: 1}\n"
      "workload: {model: resnet50_v1_5, dataset: imagenet, train: {epochs: 1}, "
      "precision: fp16, batch_per_accelerator: 64}\n";
  const auto text = training_text(both, "s.yaml", {}, {});
  REQUIRE(text);
  const ScenarioFile file = file_of({}, *text);
  CHECK_FALSE(file.scenario.serving);
  REQUIRE(file.scenario.cluster.pools.size() == 1);
  CHECK(make_plan(file, shipped_catalog()));
}
