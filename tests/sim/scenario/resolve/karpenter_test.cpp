#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/scenario/node_requirements.h"
#include "support/scenario_text.h"

// The machines among which Karpenter chooses, by the requirements of NodePools [karpenter.sh,
// "NodePools"; kubernetes.io, "Assigning Pods to Nodes"].
using namespace reckon;
using Catch::Matchers::Contains;
using test::errors_of;

namespace {

const std::string kKarpenterBase = R"(
name: base
start: 2026-12-04T18:00:00Z
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 9}
  precision: fp32
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored, workers: 3}
cluster:
  provider: aws
  service: eks
  region: us-east-1
  autoscaler: karpenter
  karpenter:
    nodePools:
      - name: default
        requirements:
          - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  pools:
    - name: gpu
      machine: g5.2xlarge
      nodes: {initial: 0, min: 0, max: 3}
      autoscaling: true
)";

const std::string kRequirements = "cluster.karpenter.nodePools.default.requirements";

Plan karpenter_plan_with(const std::vector<std::string>& overrides = {}) {
  return test::checked_plan_of(kKarpenterBase, overrides);
}

std::string karpenter_with(const std::string& override) {
  return errors_of(kKarpenterBase, {override});
}

std::vector<std::string> choices_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlannedPool& pool : plan.pools)
    if (pool.node_pool)
      names.push_back(pool.machine.name + " " + std::string(to_text(pool.pricing)));
  return names;
}

/// The NodePool's requirements: on demand, and one more.
std::string requiring(const std::string& more) {
  return kRequirements +
         "=[{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, " + more + "]";
}

NodeRequirement requirement(RequirementOperator op, std::vector<std::string> values = {}) {
  return {"key", op, std::move(values)};
}

}  // namespace

TEST_CASE("operators compare a node's label as Kubernetes does") {
  using Op = RequirementOperator;
  CHECK(meets(requirement(Op::In, {"a", "b"}), "b"));
  CHECK_FALSE(meets(requirement(Op::In, {"a", "b"}), "c"));
  CHECK_FALSE(meets(requirement(Op::In, {"a"}), std::nullopt));
  CHECK(meets(requirement(Op::NotIn, {"a"}), std::nullopt));
  CHECK(meets(requirement(Op::NotIn, {"a"}), "b"));
  CHECK(meets(requirement(Op::Exists), "b"));
  CHECK_FALSE(meets(requirement(Op::Exists), std::nullopt));
  CHECK(meets(requirement(Op::DoesNotExist), std::nullopt));
  CHECK(meets(requirement(Op::Gt, {"2"}), "3"));
  CHECK_FALSE(meets(requirement(Op::Gt, {"3"}), "3"));
  CHECK(meets(requirement(Op::Gte, {"3"}), "3"));
  CHECK(meets(requirement(Op::Lt, {"10"}), "9"));  // numbers, not texts
  CHECK(meets(requirement(Op::Lte, {"9"}), "9"));
  CHECK_FALSE(meets(requirement(Op::Gt, {"2"}), "many"));
}

TEST_CASE("labels of a machine are read from its name and its size") {
  const Machine* g4dn = test::shipped_catalog().find_machine(Provider{"aws"}, "g4dn.2xlarge");
  REQUIRE(g4dn != nullptr);
  const NodeChoice node{*g4dn, test::shipped_catalog().find_accelerator("T4"), CapacityType::spot,
                        "us-east-1", ""};
  const auto label = [&](const std::string& key) {
    return label_of(node, key, "karpenter.k8s.aws").value_or("none");
  };
  CHECK(label("node.kubernetes.io/instance-type") == "g4dn.2xlarge");
  CHECK(label("karpenter.k8s.aws/instance-family") == "g4dn");
  CHECK(label("karpenter.k8s.aws/instance-category") == "g");
  CHECK(label("karpenter.k8s.aws/instance-generation") == "4");
  CHECK(label("karpenter.k8s.aws/instance-size") == "2xlarge");
  CHECK(label("karpenter.k8s.aws/instance-cpu") == "8");
  CHECK(label("karpenter.k8s.aws/instance-memory") == "32768");
  CHECK(label("karpenter.k8s.aws/instance-gpu-name") == "t4");
  CHECK(label("karpenter.k8s.aws/instance-gpu-count") == "1");
  CHECK(label("kubernetes.io/arch") == "amd64");
  CHECK(label("karpenter.sh/capacity-type") == "spot");
  CHECK(label("topology.kubernetes.io/zone") == "none");
}

TEST_CASE(
    "a pod takes any machine that holds it: the same GPUs, as many vCPUs and as much memory") {
  CHECK(choices_of(karpenter_plan_with()) ==
        std::vector<std::string>{"g5.2xlarge on_demand", "g5.4xlarge on_demand",
                                 "g5.8xlarge on_demand", "g5.16xlarge on_demand"});
  CHECK(
      choices_of(karpenter_plan_with({requiring("{key: karpenter.k8s.aws/instance-size, operator: "
                                                "NotIn, values: [8xlarge, 16xlarge]}")})) ==
      std::vector<std::string>{"g5.2xlarge on_demand", "g5.4xlarge on_demand"});
  CHECK(choices_of(karpenter_plan_with({"cluster.pools.gpu.machine=g5.8xlarge"})) ==
        std::vector<std::string>{"g5.8xlarge on_demand", "g5.16xlarge on_demand"});
}

TEST_CASE("a capacity type needs a price, and reserved a reservation") {
  const std::string both = kRequirements + ".0.values=[spot, on-demand, reserved]";
  CHECK(choices_of(karpenter_plan_with({both, "cluster.pools.gpu.machine=p4d.24xlarge"})) ==
        std::vector<std::string>{"p4d.24xlarge spot", "p4d.24xlarge on_demand"});
  CHECK(choices_of(karpenter_plan_with(
            {both, "cluster.pools.gpu.machine=p4d.24xlarge",
             "prices.reserved=[{machine: p4d.24xlarge, count: 2, price: 9 USD/h}]"})) ==
        std::vector<std::string>{"p4d.24xlarge reserved", "p4d.24xlarge spot",
                                 "p4d.24xlarge on_demand"});
}

TEST_CASE("under the cluster-autoscaler NodePools count for nothing") {
  const Plan plan = karpenter_plan_with({"cluster.autoscaler=cluster_autoscaler"});
  CHECK(plan.pools.size() == 1);
  CHECK_FALSE(plan.karpenter);
}

TEST_CASE("what Karpenter cannot do is said at its place") {
  CHECK_THAT(karpenter_with("cluster.service=none"), Contains("Karpenter is not simulated under"));
  CHECK_THAT(karpenter_with("cluster.pools.gpu.nodes={initial: 1, min: 1, max: 3}"),
             Contains("Karpenter keeps no nodes without pods, and pool 'gpu' has a minimum"));
  CHECK_THAT(
      karpenter_with(kRequirements + ".0.key=karpenter.sh/capacity-typ"),
      Contains("no machine of the catalog has the label 'karpenter.sh/capacity-typ'; did you "
               "mean 'karpenter.sh/capacity-type'?"));
  CHECK_THAT(
      karpenter_with(
          requiring("{key: karpenter.k8s.aws/instance-family, operator: In, values: [g6]}")),
      Contains("machine g5.2xlarge says what a pod asks for, and no NodePool makes such nodes") &&
          Contains("NodePool 'default' requires karpenter.k8s.aws/instance-family In [g6]"));
  CHECK_THAT(
      karpenter_with("cluster.karpenter.nodePools.default.disruption={budgets: [{nodes: 120%}]}"),
      Contains("'120%' is neither a number of nodes nor a share of them"));
  CHECK_THAT(karpenter_with(
                 "cluster.karpenter.nodePools.default.disruption={budgets: [{nodes: 1, schedule: "
                 "\"@daily\"}]}"),
             Contains("schedule and duration stand together"));
  CHECK_THAT(karpenter_with(
                 "cluster.karpenter.nodePools.default.disruption={budgets: [{nodes: 1, schedule: "
                 "\"61 * * * *\", duration: 1h}]}"),
             Contains("'61' is no minute (0 to 59)"));
  CHECK_THAT(karpenter_with(
                 requiring("{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [3, 4]}")),
             Contains("operator Gt takes one value, a whole number"));
}

TEST_CASE("a NodePool serves no pod where fewer machines hold it than minValues asks for") {
  const std::string sizes =
      "{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge, g5.2xlarge, "
      "g5.4xlarge], minValues: ";
  // Of the three the two larger hold a pod of g5.2xlarge.
  CHECK(choices_of(karpenter_plan_with({requiring(sizes + "2}")})).size() == 2);
  CHECK_THAT(karpenter_with(requiring(sizes + "3}")),
             Contains("NodePool 'default' wants 3 values of node.kubernetes.io/instance-type, and "
                      "the machines that hold a pod have fewer"));
  CHECK_THAT(karpenter_with("disruptions={drift: [1d]}"),
             Contains("drift is simulated of nodes that Karpenter makes for jobs that share"));
}
