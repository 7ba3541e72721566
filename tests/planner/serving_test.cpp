#include "planner/serving.h"

#include <catch2/catch.hpp>

#include "sim/scenario/training_text.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/shipped_catalog.h"

using namespace reckon;
using namespace reckon::planner;
using test::shipped_catalog;

namespace {

const std::string kQuestion = R"(
serving:
  model: resnet50_v1_5
  precision: fp16
  requests_per_second: 1500
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
  CHECK(answer_of({"serving.requests_per_second=3000"}).choices.front().usd_per_hour >= base);
}

TEST_CASE("the fewest is what counting up from the least finds, within every bound") {
  for (int least = 1; least <= 12; ++least)
    for (int most = least - 1; most <= 40; ++most)
      for (int enough = 1; enough <= 42; ++enough) {
        std::optional<int> counted;
        for (int n = least; n <= most && !counted; ++n)
          if (n >= enough) counted = n;
        CHECK(fewest_that_hold(least, most, [&](int n) {
                REQUIRE((n >= least && n <= most));
                return n >= enough;
              }) == counted);
      }
}

TEST_CASE("machines on premises are a choice, as many as there are, with and without a price") {
  const std::vector<std::string> own{
      "cluster={provider: on_premises, pools: [{name: ours, role: inference, machine: {vcpu: 8, "
      "memory: 64GiB, network: 10Gbps}, accelerator: {type: T4, count: 2}, nodes: 3}]}",
      "serving.requests_per_second=500"};
  const ServingAnswer answer = answer_of(own);
  REQUIRE(answer.choices.size() == 1);
  const ServingChoice& c = answer.choices.front();
  CHECK(c.own);
  CHECK(c.machine == "ours");
  CHECK(c.accelerator == "T4");
  CHECK_FALSE(c.priced);
  CHECK(c.nodes <= 3);
  CHECK(c.forecast.p99.count() <= 0.050);
  auto busy = own;
  busy.push_back("serving.requests_per_second=20000");
  CHECK(answer_of(busy).rejected.contains("more nodes than the pool has"));
  auto priced = own;
  priced.push_back("cluster.pools.ours.machine.price=2 USD/h");
  const ServingAnswer paid = answer_of(priced);
  REQUIRE(paid.choices.size() == 1);
  CHECK(paid.choices.front().usd_per_hour == Approx(2.0 * paid.choices.front().nodes));
}

TEST_CASE("a quota and a budget are kept, and said where they leave nothing") {
  const ServingQuestion on_t4{.keep = 1, .accelerators = {"T4"}};
  const ServingAnswer free = answer_of({}, on_t4);
  REQUIRE(free.choices.size() == 1);
  const ServingChoice& best = free.choices.front();
  REQUIRE(best.replicas > 1);
  const auto quota = [](int accelerators) {
    return "plan.quota={gcp/us-central1/T4: " + std::to_string(accelerators) + "}";
  };
  const int held = best.nodes * best.per_node;
  CHECK(answer_of({quota(held)}, on_t4).choices.front().usd_per_hour == best.usd_per_hour);
  const ServingAnswer small = answer_of({quota(best.replicas - 1)}, on_t4);
  CHECK(small.choices.empty());
  CHECK(small.rejected.contains("above the quota"));
  // The period is an hour.
  const auto budget = [](double usd) { return "plan.budget=" + std::to_string(usd) + " USD"; };
  CHECK(answer_of({budget(1.01 * best.usd_per_hour)}, on_t4).choices.front().usd_per_hour ==
        best.usd_per_hour);
  const ServingAnswer poor = answer_of({budget(0.99 * best.usd_per_hour)}, on_t4);
  CHECK(poor.choices.empty());
  CHECK(poor.rejected.contains("above the budget"));
}

TEST_CASE("times that were measured hold for the machine that they were measured on") {
  const ServingAnswer answer =
      answer_of({"serving.stack=measured", "serving.overhead.request=3ms"});
  REQUIRE(answer.choices.size() == 1);
  CHECK(answer.choices.front().own);
  CHECK(answer.rejected.contains("what a batch takes was measured on the scenario's own pool"));
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
