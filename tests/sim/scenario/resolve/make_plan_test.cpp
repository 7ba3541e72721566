#include <catch2/catch.hpp>

#include "sim/scenario/resolve/serving.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/scenario_text.h"

// The plans of the shipped scenarios, worked out by hand.
using namespace reckon;
using namespace reckon::test;

namespace {

Plan plan_named(const std::string& name, const std::vector<std::string>& overrides = {}) {
  Expected<Plan> plan = shipped_plan(name, overrides);
  if (!plan) FAIL(format(plan.error()));
  return std::move(*plan);
}

bool warns(const Plan& plan, const std::string& text) {
  return std::any_of(plan.warnings.begin(), plan.warnings.end(),
                     [&](const std::string& w) { return w.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("three nodes of two P100 are six replicas of 64 images") {
  const Plan plan = plan_named("gke-p100-autoscaling");
  const PlannedWorkload& job = plan.jobs.at(0);
  CHECK(job.strategy.workers == 3);
  CHECK(job.strategy.accelerators_per_worker == 2);
  CHECK(job.global_batch == 384);
  // 90 x 1,281,167 images / 384 = 300,273.5
  CHECK(job.steps == 300274);
  CHECK(job.evaluations == 9);
  CHECK(plan.pools.at(0).nodes_max == 5);
  CHECK(plan.pools.at(0).peer_link.name == "pcie-host");
  CHECK(plan.retry.backoff_limit == 6);
}

TEST_CASE("a node's price on Google Cloud is the machine's and its GPUs'") {
  const Plan plan = plan_named("gke-p100-autoscaling");
  const NodePrice& price = plan.pools.at(0).price;
  // us-central1: n1-standard-16 0.76 USD/h of 2024-01-01, P100 1.46 USD/h of 2025-07-01
  CHECK(price.machine.nano_usd_per_hour == 760'000'000);
  CHECK(price.accelerators.nano_usd_per_hour == 2'920'000'000);
  CHECK(price.as_of == "2024-01-01");
  CHECK(plan.prices_as_of == "2024-01-01");
  CHECK(warns(plan, "n1-standard-16 of 2024-01-01"));
}

TEST_CASE("spot nodes have spot prices") {
  const Plan plan = plan_named("spot-month");
  // us-central1: n1-standard-8 0.08 USD/h spot, V100 1.0885 USD/h spot; servers on demand:
  // n1-highmem-16 0.9472 USD/h
  CHECK(plan.pools.at(0).price.machine.nano_usd_per_hour == 80'000'000);
  CHECK(plan.pools.at(0).price.accelerators.nano_usd_per_hour == 1'088'500'000);
  CHECK(plan.pools.at(1).price.machine.nano_usd_per_hour == 947'200'000);
}

TEST_CASE("the user's prices come before the catalog's, a discount applies to the catalog's") {
  const Plan plan = plan_named(
      "gke-p100-autoscaling",
      {"prices={currency: EUR, usd_rate: 0.8, discount: 50%, rates: {n1-standard-16: 0.4 EUR/h}}"});
  // 0.4 EUR at 0.8 EUR a USD is 0.5 USD; 2 x 1.46 USD at half price is 1.46 USD
  CHECK(plan.pools.at(0).price.machine.nano_usd_per_hour == 500'000'000);
  CHECK(plan.pools.at(0).price.accelerators.nano_usd_per_hour == 1'460'000'000);
  CHECK(plan.prices_as_of == "2025-07-01");
}

TEST_CASE(
    "of one price for all and one for each part the newer is taken, the user's own before both") {
  // a2-highgpu-8g, us-central1: whole 29.38708 USD/h of 2024-01-01; 5.91584 and 8 x 2.93391 of
  // 2025-07-01.
  const Plan listed = plan_named("maintenance");
  CHECK(listed.pools.at(0).price.as_of == "2025-07-01");
  CHECK(listed.pools.at(0).price.machine.nano_usd_per_hour == 5'915'840'000);
  CHECK(listed.pools.at(0).price.accelerators.nano_usd_per_hour == 23'471'280'000);
  const Plan own = plan_named("maintenance", {"prices={rates: {a2-highgpu-8g: 20 USD/h}}"});
  CHECK(own.pools.at(0).price.machine.nano_usd_per_hour == 20'000'000'000);
  CHECK(own.pools.at(0).price.accelerators.nano_usd_per_hour == 0);
}

TEST_CASE("a price that nobody knows leaves the cost open and says so") {
  // The catalog has no price of n1 machines in us-east1.
  const Plan plan = plan_named("gke-p100-autoscaling",
                               {"cluster.region=us-east1", "cluster.zone=us-east1-c", "expect=[]"});
  CHECK_FALSE(plan.pools.at(0).price.known);
  CHECK(warns(plan, "no on-demand price of n1-standard-16 in us-east1 is known"));
}

TEST_CASE("an AI Platform master is a worker beside the others") {
  const Plan plan = plan_named("ai-platform-t4");
  const PlannedStrategy& s = plan.jobs.at(0).strategy;
  CHECK(s.workers == 10);  // the master and 9 workers
  CHECK(s.accelerators_per_worker == 4);
  CHECK(s.servers->count == 3);
  CHECK_FALSE(s.servers->synchronous);
  CHECK(plan.jobs.at(0).global_batch == 10 * 4 * 64);
  CHECK(plan.pools.at(0).role == Role::chief);
  CHECK(plan.pool_with(Role::parameter_server)->nodes_max == 3);
  CHECK(warns(plan, "prices are those of Compute Engine"));
}

TEST_CASE("a pool without accelerators beside one with them holds the parameter servers") {
  const Plan plan = plan_named("parameter-servers-k80");
  CHECK(plan.pools.at(0).role == Role::worker);
  CHECK(plan.pools.at(1).role == Role::parameter_server);
  CHECK(plan.jobs.at(0).strategy.workers == 16);  // 4 nodes x 4 K80, one each
  CHECK(plan.jobs.at(0).strategy.servers->count == 4);
}

TEST_CASE("a TPU slice is one worker on all of its chips") {
  const Plan small = plan_named("tpu-v2-8"), half = plan_named("tpu-v2-half-pod");
  CHECK(small.jobs.at(0).strategy.accelerators() == 4);
  CHECK(small.jobs.at(0).strategy.layout.micro_batch == 256);  // 1,024 images on 4 chips
  CHECK(half.jobs.at(0).strategy.accelerators() == 128);
  CHECK(half.jobs.at(0).strategy.layout.micro_batch == 64);  // 8,192 images on 128 chips
  CHECK(small.pools.at(0).peer_link.name == "ici");
  CHECK(small.pools.at(0).machine.vcpus > 0);  // of one host
  // v2-8 in us-central1 4.50 USD/h, v2-256 192 USD/h: the slice with its hosts
  CHECK(small.pools.at(0).price.accelerators.nano_usd_per_hour == 4'500'000'000);
  CHECK(half.pools.at(0).price.accelerators.nano_usd_per_hour == 192'000'000'000);
}

TEST_CASE("built-in GPUs need not be said") {
  const Plan plan = plan_named("gpt2-one-h100");
  CHECK(plan.pools.at(0).accelerator->name == "H100-SXM5-80");
  CHECK(plan.pools.at(0).accelerators_per_node == 1);
  // 10e9 tokens in sequences of 1,024, 32 a step: 305,175.8
  CHECK(plan.jobs.at(0).steps == 305176);
  // us-east4: a3-highgpu-1g 1.18251 + H100 9.79655 USD/h
  CHECK(plan.pools.at(0).price.machine.nano_usd_per_hour == 1'182'510'000);
  CHECK(plan.pools.at(0).price.accelerators.nano_usd_per_hour == 9'796'550'000);
}

TEST_CASE(
    "disruptions come from the scenario, else from the catalog, and `none` switches them off") {
  const Plan given = plan_named("maintenance");
  CHECK(given.maintenance.on);
  CHECK(given.maintenance.every.value == Seconds{7 * 86400.0});
  CHECK_FALSE(given.maintenance.every.assumed);
  CHECK_FALSE(given.failures.on);
  CHECK(std::holds_alternative<NoReclaim>(given.reclaim.law));  // no spot pool
  const Plan assumed = plan_named("gke-p100-autoscaling");
  CHECK(assumed.maintenance.on);
  CHECK(assumed.maintenance.every.assumed);
  CHECK(assumed.failures.on);
}

TEST_CASE("spot nodes without a law of their own get the catalog's, as an assumption") {
  const Plan plan = plan_named("gke-p100-autoscaling", {"cluster.pools.p100.pricing=spot"});
  CHECK(std::holds_alternative<ExponentialReclaim>(plan.reclaim.law));
  CHECK(plan.reclaim.notice == Seconds{15});  // of 30, on GKE
  CHECK(warns(plan, "no spot reclaim rate given"));
  const auto rows = assumptions_of(plan);
  CHECK(std::any_of(rows.begin(), rows.end(),
                    [](const PlanAssumption& a) { return a.key == "reclaim.mean"; }));
}

TEST_CASE("without autoscaling a pool keeps its first nodes") {
  const Plan plan = plan_named("maintenance");
  CHECK(plan.pools.at(0).nodes_min == 2);
  CHECK(plan.pools.at(0).nodes_max == 2);
}

TEST_CASE("every shipped scenario has a plan") {
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(RECKON_SOURCE_DIR) / "scenarios")) {
    INFO(entry.path());
    if (entry.path().extension() != ".yaml") continue;  // traces/
    const Expected<ScenarioFile> file = read_scenario(entry.path());
    REQUIRE(file);
    if (file->scenario.of_queue()) continue;  // shared jobs have no plan: tests/sim/queue
    if (file->scenario.serving) {
      const Expected<ServingPlan> serving = make_serving_plan(*file, test::shipped_catalog());
      CHECK((serving ? "" : format(serving.error())) == "");
      if (!trains(file->scenario)) continue;
    }
    const Expected<Plan> plan = shipped_plan(entry.path().stem().string());
    CHECK((plan ? "" : format(plan.error())) == "");
  }
}
