#include <algorithm>
#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// What a scenario says of autoscalers, and what is refused.
using namespace reckon;
using Catch::Matchers::Contains;
using test::errors_of;

namespace {

const std::string kAutoscalersBase = R"(
name: base
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 9}
  precision: fp32
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored, workers: 2}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  pools:
    - name: gpu
      machine: a2-highgpu-1g
      nodes: {initial: 0, min: 0, max: 2}
      autoscaling: true
)";
const std::string kPool = "cluster.pools.gpu.";
const std::string kSpotPool =
    "cluster.pools=[{name: gpu, machine: a2-highgpu-1g, nodes: {initial: 0, min: 0, max: 2}, "
    "autoscaling: true}, {name: spot, machine: a2-highgpu-1g, nodes: {initial: 0, min: 0, max: 2}, "
    "autoscaling: true, pricing: spot, fallback_for: gpu}]";

Plan plan_with(const std::vector<std::string>& overrides = {}) {
  return test::checked_plan_of(kAutoscalersBase, overrides);
}
std::string autoscalers_with(const std::vector<std::string>& overrides) {
  return errors_of(kAutoscalersBase, overrides);
}

const PlannedPool& named(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.pools, name, &PlannedPool::name);
  if (found == plan.pools.end()) FAIL("no pool " + name);
  return *found;
}

double hour(const PlannedPool& pool) {
  return double(pool.price.machine.nano_usd_per_hour + pool.price.accelerators.nano_usd_per_hour);
}

}  // namespace

TEST_CASE("a key of earlier releases is read as today's, and not beside it") {
  std::string former = kSpotPool;
  former.replace(former.find("fallback_for"), std::string("fallback_for").size(), "stands_in_for");
  CHECK(named(plan_with({former}), "spot").fallback_for == 0);
  const std::string both = kSpotPool.substr(0, kSpotPool.rfind('}')) + ", stands_in_for: gpu}]";
  CHECK_THAT(autoscalers_with({both}),
             Contains("'stands_in_for' is 'fallback_for' of earlier releases"));
}

TEST_CASE("a chain of expanders is read as the flag has it") {
  const Plan plan =
      plan_with({kSpotPool, "cluster.cluster_autoscaler.expander=priority,least-waste",
                 "cluster.cluster_autoscaler.priorities={10: [.*], 50: .*spot.*}",
                 "cluster.cluster_autoscaler.balance-similar-node-groups=true"});
  REQUIRE(plan.cluster_autoscaler);
  CHECK(plan.cluster_autoscaler->expander ==
        std::vector<Expander>{Expander::priority, Expander::least_waste});
  REQUIRE(plan.cluster_autoscaler->priorities.size() == 2);
  CHECK(plan.cluster_autoscaler->priorities[1].priority == 50);
  CHECK(plan.cluster_autoscaler->priorities[1].groups == std::vector<std::string>{".*spot.*"});
  CHECK(plan.cluster_autoscaler->balance_similar_node_groups);
  CHECK(plan.chooses_pools());
}

TEST_CASE("what an expander cannot use is said at its place") {
  const std::string expander = "cluster.cluster_autoscaler.expander=";
  CHECK_THAT(autoscalers_with({expander + "cheapest"}), Contains("unknown expander 'cheapest'"));
  CHECK_THAT(autoscalers_with({expander + "least-wast"}), Contains("did you mean 'least-waste'"));
  CHECK_THAT(autoscalers_with({expander + "price,price"}), Contains("stands twice in the chain"));
  CHECK_THAT(autoscalers_with({expander + "priority"}), Contains("needs priorities"));
  CHECK_THAT(
      autoscalers_with({expander + "random", "cluster.cluster_autoscaler.priorities={10: [.*]}"}),
      Contains("count under the expander priority only"));
  CHECK_THAT(autoscalers_with(
                 {expander + "priority", "cluster.cluster_autoscaler.priorities={10: ['(']}"}),
             Contains("no regular expression"));
  CHECK_THAT(autoscalers_with(
                 {expander + "priority", "cluster.cluster_autoscaler.priorities={high: [.*]}"}),
             Contains("'high' is no priority"));
  CHECK_THAT(autoscalers_with({expander + "price", "cluster.provider=aws", "cluster.service=eks",
                               "cluster.region=us-east-1", kPool + "machine=p4d.24xlarge"}),
             Contains("knows no prices under EKS") && Contains("gke"));
}

TEST_CASE("under an expander several larger pools may serve the pods of one") {
  const auto pools = [](const std::string& machine) {
    return "cluster.pools=[{name: gpu, machine: n1-standard-8, accelerator: {type: T4}, nodes: "
           "{initial: 0, min: 0, max: 2}, autoscaling: true}, {name: b, machine: " +
           machine +
           ", accelerator: {type: T4}, nodes: {initial: 0, min: 0, max: 2}, autoscaling: true, "
           "fallback_for: gpu}, {name: c, machine: n1-standard-32, accelerator: {type: T4}, "
           "nodes: "
           "{initial: 0, min: 0, max: 2}, autoscaling: true, pricing: spot, fallback_for: gpu}]";
  };
  const std::string expander = "cluster.cluster_autoscaler.expander=price";
  CHECK(plan_with({pools("n1-standard-16"), expander}).pools.size() == 3);
  CHECK_THAT(autoscalers_with({pools("n1-standard-4"), expander}),
             Contains("does not fit a node of 'b'"));
  CHECK_THAT(autoscalers_with({pools("n1-standard-8")}),
             Contains("a second fallback pool") && Contains("cluster_autoscaler: {expander"));
}

TEST_CASE("flex-start has a price, a queue and a longest run") {
  const Plan plan = plan_with({kPool + "provisioning=flex_start_queued"});
  const PlannedPool& pool = plan.pools[0];
  CHECK(pool.provisioning_model == ProvisioningModel::flex_start_queued);
  REQUIRE(pool.max_run_duration);
  CHECK(pool.max_run_duration->count() == 7 * 86'400);
  CHECK(pool.capacity_wait.assumed);
  // 0.6 of the list price, which may be as low as 0.47 of it.
  CHECK(hour(pool) == Approx(0.6 * hour(plan_with().pools[0])).epsilon(1e-6));
  CHECK(pool.price.spread.low <= 0.47 / 0.6);
  CHECK_THAT(pool.price.source, Contains("gke-flex-start"));
  const Plan own = plan_with({kPool + "provisioning=flex_start", kPool + "max_run_duration=1d",
                              kPool + "capacity_wait=2h", "prices.rates={a2-highgpu-1g: 2 USD/h}"});
  CHECK(own.pools[0].max_run_duration->count() == 86'400);
  CHECK(own.pools[0].capacity_wait.value.count() == 7200);
  CHECK(own.pools[0].capacity_wait.low == own.pools[0].capacity_wait.high);
  CHECK(hour(own.pools[0]) == Approx(2e9));
}

TEST_CASE("what flex-start and ProvisioningRequests cannot be is refused at its place") {
  const std::string flex = kPool + "provisioning=flex_start";
  CHECK_THAT(autoscalers_with({flex, "cluster.provider=aws", "cluster.service=eks",
                               "cluster.region=us-east-1", kPool + "machine=p4d.24xlarge"}),
             Contains("EKS has no flex-start"));
  CHECK_THAT(autoscalers_with({flex, kPool + "machine=n1-standard-8"}),
             Contains("is for accelerators"));
  CHECK_THAT(autoscalers_with({flex, kPool + "pricing=spot"}), Contains("has a price of its own"));
  CHECK_THAT(autoscalers_with({flex, kPool + "nodes={initial: 1, min: 0, max: 2}"}),
             Contains("scaled from none"));
  CHECK_THAT(autoscalers_with({flex, kPool + "max_run_duration=8d"}), Contains("for at most 7 d"));
  CHECK_THAT(autoscalers_with({kPool + "capacity_wait=1h"}), Contains("is of flex-start nodes"));
  CHECK_THAT(autoscalers_with({kPool + "provisioning=check_capacity"}), Contains("makes no nodes"));
  CHECK_THAT(autoscalers_with({kPool + "provisioning=best_effort_atomic",
                               kPool + "autoscaling=false", kPool + "nodes=2"}),
             Contains("is not scaled"));
  CHECK(autoscalers_with({kPool + "provisioning=check_capacity", kPool + "autoscaling=false",
                          kPool + "nodes=2"}) == "");
}

TEST_CASE("a ComputeClass's rules become pools, the preferred first") {
  const std::string kind = "cluster.autoscaler=node_auto_provisioning";
  const std::string made = "cluster.node_auto_provisioning=";
  const Plan plan = plan_with(
      {kind, made + "{computeClass: {priorities: [{machineFamily: a2, spot: true}, {machineFamily: "
                    "a2, flexStart: {enabled: true}, maxRunDurationSeconds: 86400}], "
                    "whenUnsatisfiable: ScaleUpAnyway}}"});
  const PlannedPool& home = plan.pools[0];
  CHECK(home.pricing == CapacityType::spot);
  CHECK(home.rank == 0);
  CHECK(home.pool_creation.value.count() > 0);
  const PlannedPool& flex = named(plan, "gpu-a2-highgpu-1g-flex_start");
  CHECK(flex.rank == 1);
  CHECK(flex.provisioning_model == ProvisioningModel::flex_start);
  CHECK(flex.max_run_duration->count() == 86'400);
  CHECK(flex.fallback_for == 0);
  const PlannedPool& anyway = named(plan, "gpu-a2-highgpu-1g-on_demand");
  CHECK(anyway.rank == 2);
  CHECK_FALSE(anyway.max_run_duration);
  CHECK(hour(home) < hour(anyway));
  CHECK(hour(flex) < hour(anyway));
}

TEST_CASE("node auto-provisioning says what it cannot make") {
  const std::string kind = "cluster.autoscaler=node_auto_provisioning";
  const std::string made = "cluster.node_auto_provisioning=";
  const std::string limits = made + "{resourceLimits: [{resourceType: cpu, maximum: 100}]}";
  CHECK(autoscalers_with({kind, limits}) == "");
  CHECK_THAT(autoscalers_with({kind}),
             Contains("needs limits of vCPUs and memory, or a ComputeClass"));
  CHECK_THAT(
      autoscalers_with({kind, made + "{resourceLimits: [{resourceType: disks, maximum: 1}]}"}),
      Contains("unknown resource 'disks'"));
  CHECK_THAT(autoscalers_with({kind, made + "{computeClass: {priorities: [{machineFamily: a3}]}}"}),
             Contains("the ComputeClass makes no such nodes"));
  CHECK_THAT(autoscalers_with({kind, made + "{computeClass: {priorities: []}}"}),
             Contains("has no rule"));
  CHECK_THAT(autoscalers_with(
                 {kind, made + "{computeClass: {priorities: [{spot: true, flexStart: {enabled: "
                               "true}}]}}"}),
             Contains("flexStart cannot stand beside spot"));
  CHECK_THAT(autoscalers_with({kind, limits, kPool + "nodes={initial: 1, min: 1, max: 2}"}),
             Contains("made for pods that wait"));
  CHECK_THAT(autoscalers_with({kind, limits, "cluster.provider=aws", "cluster.service=eks",
                               "cluster.region=us-east-1", kPool + "machine=p4d.24xlarge"}),
             Contains("EKS makes no node pools for pods"));
  CHECK_THAT(autoscalers_with({kind, made + "{resourceLimits: [{resourceType: cpu, maximum: 100}], "
                                            "autoprovisioningLocations: [us-central1-f]}"}),
             Contains("does not say in which of the zones"));
}

TEST_CASE("Slurm scales machines that run without a service") {
  const std::string kind = "cluster.autoscaler=slurm", none = "cluster.service=gce";
  const std::string power =
      "cluster.slurm={SuspendTime: 5min, ResumeTimeout: 10min, SuspendExcNodes: [\"gpu:1\"]}";
  const Plan plan = plan_with({kind, none, power});
  REQUIRE(plan.slurm);
  CHECK(plan.slurm->suspend_time->count() == 300);
  CHECK(plan.slurm->resume_timeout.count() == 600);
  CHECK(plan.slurm->suspend_exc_nodes[0].count == 1);
  CHECK_FALSE(plan_with({kind, none, "cluster.slurm={SuspendTime: -1}"}).slurm->suspend_time);
  CHECK_THAT(autoscalers_with({kind, power}),
             Contains("does not power machines of GKE on and off"));
  CHECK_THAT(autoscalers_with({kind, none}), Contains("no power without SuspendTime"));
  CHECK_THAT(autoscalers_with({kind, none, power, kPool + "nodes={initial: 1, min: 1, max: 2}"}),
             Contains("by SuspendExcNodes"));
  CHECK_THAT(
      autoscalers_with({kind, none, "cluster.slurm={SuspendTime: 5min, SuspendExcNodes: [gpus]}"}),
      Contains("no pool is named 'gpus'") && Contains("did you mean 'gpu'"));
  CHECK_THAT(autoscalers_with(
                 {kind, none, "cluster.slurm={SuspendTime: 5min, SuspendExcNodes: [\"gpu:\"]}"}),
             Contains("has no number of nodes behind its colon"));
  CHECK_THAT(autoscalers_with({none}), Contains("does not autoscale node pools"));
}
