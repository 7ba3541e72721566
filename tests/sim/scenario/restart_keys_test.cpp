#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// How a scenario says what a job does after a loss, and where its frequent checkpoints go.
using namespace reckon;
using Catch::Matchers::Contains;
using test::errors_of;
using test::plan_of;

namespace {

std::string text(const std::string& strategy = "{kind: multi_worker_mirrored}",
                 const std::string& nodes = "4") {
  return "name: restarts\n"
         "workload:\n"
         "  model: resnet50\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 90}\n"
         "  precision: fp32\n"
         "  batch_per_accelerator: 64\n"
         "  strategy: " +
         strategy +
         "\n"
         "  checkpoint: {interval: 20min}\n"
         "cluster:\n"
         "  provider: gcp\n"
         "  service: gke\n"
         "  region: us-central1\n"
         "  zone: us-central1-c\n"
         "  pools:\n"
         "    - {name: v100, machine: n1-standard-16, accelerator: {type: V100-SXM2-16, count: 2},"
         " nodes: " +
         nodes +
         "}\n"
         "disruptions: {failures: {mtbf_per_accelerator: 50000h}}\n";
}

Plan restart_planned(const std::string& scenario, const std::vector<std::string>& overrides) {
  const auto plan = plan_of(scenario, overrides);
  REQUIRE(plan);
  return *plan;
}
bool assumes(const Plan& plan, std::string_view key) {
  for (const PlanAssumption& a : assumptions_of(plan))
    if (a.key == key) return true;
  return false;
}

}  // namespace

TEST_CASE("a scenario that says nothing of restarts has a plan without one") {
  const Plan plan = restart_planned(text(), {});
  CHECK_FALSE(plan.jobs[0].restart);
  CHECK_FALSE(plan.jobs[0].checkpoint.local);
  CHECK(plan.failures.process_share.value == 0);
  CHECK(plan.failures.straggler_share.value == 0);
  CHECK_FALSE(assumes(plan, "restart.regroup"));
}

TEST_CASE("an elastic job goes on with half of its nodes, or with those that the scenario says") {
  const Plan half = restart_planned(text(), {"workload.restart={kind: elastic}"});
  REQUIRE(half.jobs[0].restart);
  CHECK(half.jobs[0].restart->min_workers == 2);
  CHECK(half.jobs[0].restart->batch == ElasticBatch::fixed);
  CHECK(assumes(half, "restart.regroup"));
  const Plan three =
      restart_planned(text(), {"workload.restart={kind: elastic, min: 3, batch: scaled}"});
  CHECK(three.jobs[0].restart->min_workers == 3);
  CHECK(three.jobs[0].restart->batch == ElasticBatch::scaled);
  CHECK_THAT(errors_of(text(), {"workload.restart={kind: elastic, min: 4}"}),
             Contains("does not shrink") && Contains("between 1 and 3"));
  CHECK_THAT(errors_of(text("{kind: mirrored}", "1"), {"workload.restart={kind: elastic}"}),
             Contains("fewer data-parallel copies"));
  CHECK_THAT(errors_of(text("{kind: parameter_server, parameter_servers: 1, colocated: true}"),
                       {"workload.restart={kind: elastic}"}),
             Contains("parameter servers"));
}

TEST_CASE("warm spares are nodes of the pool that no worker has") {
  const Plan plan = restart_planned(text("{kind: multi_worker_mirrored}", "5"),
                                    {"workload.restart={kind: warm_spare, spares: 1}"});
  CHECK(plan.jobs[0].strategy.workers == 4);
  CHECK(plan.jobs[0].restart->spares == 1);
  const Plan counted = restart_planned(text("{kind: multi_worker_mirrored, workers: 3}", "5"),
                                       {"workload.restart={kind: warm_spare}"});
  CHECK(counted.jobs[0].restart->spares == 2);
  CHECK_THAT(errors_of(text("{kind: multi_worker_mirrored, workers: 4}"),
                       {"workload.restart={kind: warm_spare, spares: 1}"}),
             Contains("needs 4 of the 4 nodes") && Contains("nodes: 5"));
  CHECK_THAT(errors_of(text(), {"workload.restart={kind: warm_spare}"}), Contains("spare node"));
}

TEST_CASE("keys of one kind of restart are refused for another, and kinds are named") {
  CHECK_THAT(errors_of(text(), {"workload.restart={kind: in_place, spares: 1}"}),
             Contains("'spares' does not belong to kind in_place") && Contains("warm_spare"));
  CHECK_THAT(errors_of(text(), {"workload.restart={kind: full, min: 2}"}),
             Contains("'min' does not belong to kind full"));
  CHECK_THAT(errors_of(text(), {"workload.restart={kind: hot}"}),
             Contains("full, in_place, warm_spare, elastic"));
}

TEST_CASE("checkpoints on the nodes come in front of those in the storage") {
  const Plan memory = restart_planned(text(), {"workload.checkpoint.local={every: 1min}"});
  REQUIRE(memory.jobs[0].checkpoint.local);
  CHECK(memory.jobs[0].checkpoint.local->to == LocalTier::peer_memory);
  CHECK(memory.jobs[0].checkpoint.local->replicas == 2);
  CHECK_FALSE(assumes(memory, "checkpoint.local_disk"));
  const Plan disk =
      restart_planned(text(), {"workload.checkpoint.local={to: local_disk, every: 1min}"});
  CHECK(disk.jobs[0].checkpoint.local->replicas == 1);
  CHECK(assumes(disk, "checkpoint.local_disk"));
  CHECK_THAT(errors_of(text(), {"workload.checkpoint.local={every: 30min}"}),
             Contains("not more frequent"));
  CHECK_THAT(errors_of(text(), {"workload.checkpoint.local={every: 1min, replicas: 5}"}),
             Contains("4 nodes cannot hold 5 copies"));
  CHECK_THAT(errors_of(text(), {"workload.checkpoint={interval: none, local: {every: 1min}}"}),
             Contains("gone with more than a node"));
}

TEST_CASE("failures of processes and stragglers are the scenario's to say") {
  const Plan plan = restart_planned(
      text(), {"disruptions.failures.process_share=13%", "disruptions.stragglers=5%"});
  CHECK(plan.failures.process_share.value == 0.13);
  CHECK(plan.failures.straggler_share.value == 0.05);
  CHECK_FALSE(assumes(plan, "failures.straggler_share"));
  const Plan typical = restart_planned(text(), {"disruptions.stragglers=typical"});
  CHECK(typical.failures.straggler_share.value > 0.05);
  CHECK(assumes(typical, "failures.straggler_share"));
  CHECK(restart_planned(text(), {"disruptions.stragglers=none"}).failures.straggler_share.value ==
        0);
  CHECK_THAT(errors_of(text(), {"disruptions.stragglers=95%"}), Contains("stragglers"));
}
