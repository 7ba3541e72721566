#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "support/scenario_text.h"

// AI Platform's scale tiers as clusters, and types of machines that one service alone has.
using namespace reckon;
using namespace reckon::test;

namespace {

std::string on_tier(const std::string& tier, const std::string& strategy,
                    const std::string& service = "ai_platform") {
  return "name: tier\n"
         "workload:\n"
         "  model: resnet50\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 1}\n"
         "  precision: bf16\n"
         "  batch_per_accelerator: 8\n"
         "  strategy: " +
         strategy +
         "\n"
         "cluster:\n"
         "  provider: gcp\n"
         "  service: " +
         service +
         "\n"
         "  region: us-central1\n"
         "  scale_tier: " +
         tier + "\n";
}

}  // namespace

TEST_CASE("a scale tier is the pools that the service documents for it") {
  const auto standard =
      plan_of(on_tier("STANDARD_1", "{kind: parameter_server}"), {"workload.precision=fp32"});
  if (!standard) FAIL(format(standard.error()));
  REQUIRE(standard->pools.size() == 3);
  CHECK(standard->pool_with(Role::chief)->machine.name == "n1-highcpu-8");
  CHECK(standard->pool_with(Role::worker)->nodes_max == 4);
  CHECK(standard->pool_with(Role::parameter_server)->machine.name == "n1-standard-4");
  const PlannedStrategy& s = standard->jobs.at(0).strategy;
  CHECK(s.workers == 5);  // the master is a worker too
  CHECK(s.servers->count == 3);

  const auto gpu = plan_of(on_tier("basic-gpu", "{kind: single}"), {"workload.precision=fp32"});
  if (!gpu) FAIL(format(gpu.error()));
  CHECK(gpu->pools.at(0).accelerator->name == "K80");
  CHECK(gpu->pools.at(0).accelerators_per_node == 1);

  const auto tpu = plan_of(on_tier("BASIC_TPU", "{kind: tpu}"));
  if (!tpu) FAIL(format(tpu.error()));
  CHECK(tpu->pool_with(Role::worker)->slice->name == "v2-8");
}

TEST_CASE("a chief in front of a slice computes nothing, and no number of its node is assumed") {
  const auto tpu = plan_of(on_tier("BASIC_TPU", "{kind: tpu}"));
  if (!tpu) FAIL(format(tpu.error()));
  const PlannedPool& chief = *tpu->pool_with(Role::chief);
  const PlannedPool& slice = *tpu->pool_with(Role::worker);
  CHECK_FALSE(computes(*tpu, chief));
  CHECK(computes(*tpu, slice));
  CHECK(computing_pools(*tpu) == std::vector{&slice});
  CHECK(chief.host_step.value == Seconds{0});
  CHECK(chief.efficiency.launch.value == Seconds{0});
  std::set<std::string> of_chief;
  for (const PlanAssumption& a : assumptions_of(*tpu))
    if (a.key.starts_with("pools.chief.")) of_chief.insert(a.key);
  CHECK(of_chief == std::set<std::string>{"pools.chief.provisioning"});
  // A chief like the workers is one of them.
  const auto standard =
      plan_of(on_tier("STANDARD_1", "{kind: parameter_server}"), {"workload.precision=fp32"});
  if (!standard) FAIL(format(standard.error()));
  CHECK(computing_pools(*standard).size() == 2);
  CHECK(standard->pool_with(Role::chief)->host_step.value > Seconds{0});
}

TEST_CASE("a scale tier can be swept like any other value") {
  const auto premium = plan_of(on_tier("STANDARD_1", "{kind: parameter_server}"),
                               {"workload.precision=fp32", "cluster.scale_tier=PREMIUM_1"});
  if (!premium) FAIL(format(premium.error()));
  CHECK(premium->jobs.at(0).strategy.workers == 20);
  CHECK(premium->jobs.at(0).strategy.servers->count == 11);
}

TEST_CASE("scale tiers that cannot be say what can") {
  const std::string single = "{kind: single}";
  CHECK_THAT(errors_of(on_tier("BASIC_GPUS", single)),
             Catch::Contains(":13:15: error: unknown scale tier 'BASIC_GPUS'; did you mean "
                             "'BASIC_GPU'?") &&
                 Catch::Contains("BASIC_GPU (chief: 1 x n1-standard-8 with 1 x K80)"));
  CHECK_THAT(errors_of(on_tier("BASIC", single, "gke")),
             Catch::Contains("service gke has no scale tiers"));
  CHECK_THAT(errors_of(on_tier("CUSTOM", single)),
             Catch::Contains("scale tier CUSTOM leaves the machines to you"));
  CHECK_THAT(errors_of(on_tier("BASIC", single) +
                       "  pools: [{name: mine, machine: n1-standard-8, nodes: 1}]\n"),
             Catch::Contains(":14:3: error: scale tier BASIC brings its own pools"));
  // CUSTOM is what pools of one's own are called.
  const auto custom = plan_of(on_tier("CUSTOM", single) +
                                  "  pools: [{name: mine, machine: "
                                  "complex_model_m_gpu, nodes: 1}]\n",
                              {"workload.precision=fp32"});
  if (!custom) FAIL(format(custom.error()));
  CHECK(custom->pools.at(0).accelerators_per_node == 4);
}

TEST_CASE("what a tier's machines cannot do is reported at the tier") {
  CHECK_THAT(errors_of(on_tier("BASIC_GPU", "{kind: multi_worker_mirrored, workers: 2}")),
             Catch::Contains("2 workers with 1 accelerator each do not fit into the pools"));
  CHECK_THAT(errors_of(on_tier("BASIC_TPU", "{kind: single}")),
             Catch::Contains("does not run on the TPU slice of pool 'worker'"));
}

TEST_CASE("types of AI Platform's own are no machines of other services") {
  for (const std::string service : {"gke", "gce", "vertex"}) {
    INFO(service);
    CHECK_THAT(errors_of(on_tier("CUSTOM", "{kind: single}", service),
                         {"cluster.pools=[{name: own, machine: "
                          "standard_p100, nodes: 1}]"}),
               Catch::Contains("machine standard_p100 is a type of ai_platform, which " + service +
                               " does not have"));
  }
}
