#include "sim/serving/serving.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/scenario/yaml/scenario_yaml.h"
#include "sim/step/compute.h"
#include "support/shipped_catalog.h"

using namespace reckon;
using namespace std::chrono_literals;
using test::shipped_catalog;

namespace {

const std::string kService = R"(
serving:
  model: resnet50_v1_5
  precision: fp16
  requests_per_second: 100
  batch: {max: 8, wait: 2ms}
  replicas: {min: 1, max: 4}
cluster:
  provider: gcp
  region: us-central1
  zone: us-central1-a
  pools:
    - name: t4
      role: inference
      machine: n1-standard-8
      accelerator: {type: T4, count: 2}
      nodes: 2
)";

ScenarioFile file_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto file = parse_scenario(text, "s.yaml", overrides);
  if (!file) FAIL(format(file.error()));
  return std::move(*file);
}

ServingPlan serving_plan_of(const std::vector<std::string>& overrides = {}) {
  auto plan = make_serving_plan(file_of(kService, overrides), shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  return std::move(*plan);
}

}  // namespace

TEST_CASE("a service is resolved like a training: pool, price, precision, rules") {
  const ServingPlan plan = serving_plan_of();
  CHECK(plan.model.name() == "resnet50_v1_5");
  CHECK(plan.precision == Precision::fp16);
  CHECK(plan.pool().accelerator->name == "T4");
  CHECK(plan.pool().price.known);
  CHECK(plan.replicas_per_node() == 2);
  CHECK(plan.most_replicas() == 4);
  CHECK(plan.replicas.sync_period == 15s);
  CHECK(plan.replicas.downscale_stabilization == 300s);
  CHECK(plan.replicas.target_utilization == Approx(0.8));
  CHECK(plan.period == 1h);
  CHECK(plan.alone);
}

TEST_CASE("a forward pass is cheaper than a training step and a batch than its samples") {
  const ServingPlan plan = serving_plan_of();
  const Processor t4 = processor_of(plan.pool(), plan.precision);
  PlannedWorkload job;
  job.model = plan.model;
  job.precision = plan.precision;
  const ComputeTimes training = compute_times(job, t4, 8);
  const Seconds forward = forward_time(plan.model, plan.precision, t4, 8);
  CHECK(forward <= training.forward);
  CHECK(forward < training.total());
  CHECK(batch_time(plan, 8) > batch_time(plan, 1));
  CHECK(batch_time(plan, 8) < 8 * batch_time(plan, 1));
}

TEST_CASE("what was measured beside the forward pass is added to it") {
  const ServingPlan bare = serving_plan_of();
  const ServingPlan plan = serving_plan_of({"serving.overhead={request: 1ms, batch: 3ms}"});
  CHECK((batch_time(plan, 4) - batch_time(bare, 4)).count() == Approx(0.007));
}

TEST_CASE("of a server that was measured as it is nothing is modelled beside it") {
  const ServingPlan plan = serving_plan_of(
      {"serving.stack=measured", "serving.overhead.batch=1ms", "serving.overhead.request=3ms"});
  CHECK(batch_time(plan, 1).count() == Approx(0.004));
  CHECK(batch_time(plan, 8).count() == Approx(0.025));
  for (const std::string& warning : plan.origin.warnings)  // no stack is called so
    CHECK_THAT(warning, !Catch::Contains("measured"));
  const auto nothing =
      make_serving_plan(file_of(kService, {"serving.stack=measured"}), shipped_catalog());
  REQUIRE_FALSE(nothing);
  CHECK_THAT(format(nothing.error()), Catch::Contains("nothing takes time"));
}

TEST_CASE("a service alone pays for its nodes and the cluster, and answers all that it can") {
  const ServingForecast f = forecast_serving(serving_plan_of());
  CHECK(f.requests_per_second == Approx(100).epsilon(0.02));
  CHECK(f.refused_share == 0);
  CHECK(f.p50 <= f.p95);
  CHECK(f.p95 <= f.p99);
  CHECK(f.p50 >= f.batch_one);
  // Two nodes for an hour, and the fee of GKE.
  const ServingPlan plan = serving_plan_of();
  const double node = to_usd(charge(plan.pool().price.machine, to_clock(1h))).v +
                      to_usd(charge(plan.pool().price.accelerators, to_clock(1h))).v;
  const double fee = to_usd(charge(plan.cluster.billing.management, to_clock(1h))).v;
  REQUIRE(f.cost_usd);
  CHECK(*f.cost_usd == Approx(2 * node + fee));
  CHECK(f.node_hours == Approx(2));
}

TEST_CASE("beside a training the model, its precision and the cluster's fee are the training's") {
  const std::string both = R"(
workload:
  model: resnet50_v1_5
  dataset: imagenet
  train: {epochs: 1}
  precision: fp16
  batch_per_accelerator: 64
serving: {requests_per_second: 10}
cluster:
  provider: gcp
  region: us-central1
  zone: us-central1-a
  pools:
    - {name: a100, role: worker, machine: a2-highgpu-1g, nodes: 1}
    - {name: t4, role: inference, machine: n1-standard-4, accelerator: {type: T4}, nodes: 1}
)";
  const ScenarioFile file = file_of(both);
  const auto serving = make_serving_plan(file, shipped_catalog());
  if (!serving) FAIL(format(serving.error()));
  CHECK(serving->precision == Precision::fp16);
  CHECK(serving->pool().name == "t4");
  CHECK_FALSE(serving->alone);
  // The period is an hour: what the training does not pay of the fee the service does.
  const double fee = to_usd(charge(serving->cluster.billing.management, to_clock(1h))).v;
  REQUIRE(fee > 0);
  const double bare = *forecast_serving(*serving).cost_usd;
  CHECK(*forecast_serving(*serving, {}, 2h).cost_usd == Approx(bare));
  CHECK(*forecast_serving(*serving, {}, 15min).cost_usd == Approx(bare + 0.75 * fee));
  const auto training = make_plan(file, shipped_catalog());
  if (!training) FAIL(format(training.error()));
  REQUIRE(training->pools.size() == 1);
  CHECK(training->pools.front().name == "a100");
}

TEST_CASE("mistakes of a service are said at their place") {
  const auto errors = [](const std::vector<std::string>& overrides) {
    const auto plan = make_serving_plan(file_of(kService, overrides), shipped_catalog());
    return plan ? std::string() : format(plan.error());
  };
  CHECK_THAT(errors({"cluster.pools.t4.role=worker"}),
             Catch::Contains("no pool has role inference"));
  CHECK_THAT(errors({"serving.pool=t5"}), Catch::Contains("no pool is named 't5'"));
  CHECK_THAT(errors({"serving.model=resnet5"}), Catch::Contains("unknown model 'resnet5'"));
  CHECK_THAT(errors({"serving.precision=fp8"}), Catch::Contains("has no fp8"));
  CHECK_THAT(errors({"cluster.pools.t4.pricing=reserved"}), Catch::Contains("reserv"));
  CHECK_THAT(errors({"serving.requests_per_second=900000", "serving.period=1d"}),
             Catch::Contains("a shorter period"));
  // 833,333 requests/s x 600 s are what may be simulated: with the ten minutes before, too many.
  CHECK_THAT(errors({"serving.requests_per_second=800000", "serving.period=10min"}),
             Catch::Contains("a shorter period"));
  CHECK(errors({"serving.requests_per_second=800000", "serving.period=10min",
                "serving.replicas.initial=4"}) == "");
  CHECK_THAT(errors({"serving.autoscaler.sync_period=1s", "serving.period=7d"}),
             Catch::Contains("605,400 looks of the autoscaler"));
  CHECK(errors({"serving.autoscaler.sync_period=1s", "serving.period=7d", "serving.replicas=4"}) ==
        "");
  CHECK_THAT(errors({"serving.replicas.target_utilization=95%"}),
             Catch::Contains("no replica would be added"));
  CHECK_THAT(errors({"serving.autoscaler.tolerance=30%"}),
             Catch::Contains("no replica would be added"));
}

TEST_CASE("a sync_period below a second is refused where it stands") {
  for (const char* text : {"0.1ns", "15ms", "999ms"}) {
    const std::vector<std::string> changed{std::string("serving.autoscaler={sync_period: ") + text +
                                           "}"};
    const auto file = parse_scenario(kService, "s.yaml", changed);
    CHECK_FALSE(file);
  }
}

TEST_CASE("a service that falls behind says what still waits, and bills what it answered") {
  const ServingForecast f = forecast_serving(
      serving_plan_of({"serving.requests_per_second=20000", "serving.period=2min",
                       "serving.queue_limit=1000000", "serving.replicas.initial=4"}));
  CHECK(f.requests_per_second <= 4 * f.capacity * 1.02);
  CHECK(f.service.waiting_end > 0);
  CHECK(std::any_of(f.warnings.begin(), f.warnings.end(), [](const std::string& w) {
    return w.find("still waited when the period ended") != std::string::npos;
  }));
}

TEST_CASE(
    "warnings of prices and disruptions stay, the note of idle accelerators is none of a service") {
  const auto has = [](const ServingPlan& plan, const char* text) {
    const auto& w = plan.origin.warnings;
    return std::any_of(w.begin(), w.end(),
                       [&](const std::string& s) { return s.find(text) != std::string::npos; });
  };
  CHECK_FALSE(has(serving_plan_of(), "billed and idle"));
  CHECK_FALSE(has(serving_plan_of(), "disruptions"));
  CHECK(has(serving_plan_of({"disruptions={failures: {mtbf_per_accelerator: 100h}}"}),
            "disruptions do nothing"));
  CHECK(has(serving_plan_of(
                {"prices={reserved: [{machine: n1-standard-16, count: 1, price: 0.1 USD/h}]}"}),
            "is not used"));
}

TEST_CASE("on spot nodes a service is cheaper and loses some of them") {
  const ServingForecast dear = forecast_serving(serving_plan_of({"serving.period=24h"}));
  const ServingPlan plan = serving_plan_of({"serving.period=24h", "cluster.pools.t4.pricing=spot",
                                            "disruptions.preemption=!exponential {mean: 2h}"});
  CHECK(service_of(plan).reclaim.has_value());
  const ServingForecast spot = forecast_serving(plan);
  CHECK(*spot.cost_usd < *dear.cost_usd);
  CHECK(spot.service.reclaims > 0);
  CHECK(dear.service.reclaims == 0);
}

TEST_CASE("nodes in the places of a reservation cost its price") {
  const std::string reserved =
      "prices={reserved: [{machine: n1-standard-8, count: 1, price: 0.1 USD/h}]}";
  const ServingForecast open = forecast_serving(serving_plan_of());
  const ServingForecast one = forecast_serving(serving_plan_of({reserved}));
  REQUIRE(open.cost_usd);
  REQUIRE(one.cost_usd);
  const ServingPlan plan = serving_plan_of();
  const double node = to_usd(charge(plan.pool().price.machine, to_clock(1h))).v +
                      to_usd(charge(plan.pool().price.accelerators, to_clock(1h))).v;
  CHECK(*open.cost_usd - *one.cost_usd == Approx(node - 0.1));
}

TEST_CASE("a training command says that a scenario only serves") {
  const auto plan = make_plan(file_of(kService), shipped_catalog());
  REQUIRE_FALSE(plan);
  CHECK_THAT(format(plan.error()), Catch::Contains("serves and trains nothing"));
}

TEST_CASE("a model that does not fit is refused with its numbers") {
  const ScenarioFile file = file_of(kService, {"serving.model=llama3_8b", "serving.batch.max=64"});
  const auto plan = make_serving_plan(file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  const auto problem = check_serving_memory(*plan, file.places);
  REQUIRE(problem);
  CHECK_THAT(problem->what, Catch::Contains("to be served"));
}
