#include <catch2/catch.hpp>

#include "planner/small_spaces.h"

// Pools that Karpenter, node auto-provisioning, Slurm or a queue for capacity fills.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string scaled_text(const std::string& cluster, const std::string& plan,
                        const std::string& nodes = "{initial: 0, min: 0, max: 2}") {
  return "name: scaled\n"
         "workload:\n"
         "  model: resnet50\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 4}\n"
         "  global_batch: 512\n"
         "  strategy: {kind: multi_worker_mirrored}\n"
         "cluster:\n" +
         cluster + "      nodes: " + nodes +
         "\n      autoscaling: true\n"
         "forecast: {replications: 40, seed: 3}\n"
         "plan:\n" +
         plan;
}

const std::string kKarpenter =
    "  provider: aws\n"
    "  service: eks\n"
    "  region: ca-central-1\n"
    "  autoscaler: karpenter\n"
    "  karpenter:\n"
    "    nodePools:\n"
    "      - name: any\n"
    "        requirements:\n"
    "          - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}\n"
    "          - {key: karpenter.k8s.aws/instance-family, operator: In, values: [p3]}\n"
    "  pools:\n"
    "    - name: v100\n"
    "      machine: p3.2xlarge\n";

const std::string kFlexStart =
    "  provider: gcp\n"
    "  service: gke\n"
    "  region: us-east4\n"
    "  pools:\n"
    "    - name: h100\n"
    "      machine: a3-highgpu-8g\n"
    "      provisioning: flex_start_queued\n";

planner::Answer scaled_answer(const std::string& text, bool prune) {
  planner::PlannerOptions options;
  options.keep = 100;
  options.threads = 1;
  options.exact_up_to = 1000;
  options.prune = prune;
  const auto network = make_fluid_network();
  auto answer = planner::plan(test::question_of(text, shipped_catalog()), shipped_catalog(),
                              *network, options);
  if (!answer) throw std::runtime_error(format(answer.error()));
  if (answer->plans.empty()) {
    std::string why = "no plan";
    for (const auto& [reason, count] : answer->rejected)
      why += "; " + reason + ": " + std::to_string(count);
    throw std::runtime_error(why);
  }
  return std::move(*answer);
}

std::string scaled_mistake(const std::string& text) {
  planner::Base base;
  base.text = text;
  base.name = "scaled.yaml";
  const auto question = planner::make_question(std::move(base), shipped_catalog());
  return question ? "" : format(question.error());
}

}  // namespace

TEST_CASE("nodes are searched where Karpenter makes them, and bounds exclude none of the best") {
  const std::string text = scaled_text(kKarpenter, "  vary: {nodes: 1..6}\n");
  const planner::Answer all = scaled_answer(text, false), pruned = scaled_answer(text, true);
  REQUIRE_FALSE(all.plans.empty());
  REQUIRE_FALSE(pruned.plans.empty());
  CHECK(pruned.plans.front().split.nodes == all.plans.front().split.nodes);
  CHECK(pruned.plans.front().result.score == all.plans.front().result.score);
  const planner::RankedPlan& best = all.plans.front();
  CHECK_THAT(planner::bought_text(best.offer, best.split.nodes),
             Contains("spot") && Contains("on_demand") && Contains("by Karpenter"));
  // The forecast is that of `reckon simulate` with the changes: Karpenter's choices are in it.
  const auto plan = planner::plan_with(test::question_of(text, shipped_catalog()),
                                       best.result.changes, shipped_catalog());
  REQUIRE(plan);
  CHECK(plan->karpenter.has_value());
  CHECK(plan->pools.front().nodes_max == best.split.nodes);
  CHECK(plan->pools.front().nodes_initial == 0);
  CHECK(plan->pools.size() > 1);
}

TEST_CASE("every score is at least its bound where other pools replace the workers'") {
  // Without exclusion the worst of the space is forecast too: none of them lies below the least
  // that bounds say of it, or it would have been excluded wrongly.
  for (const std::string& cluster : {kKarpenter, kFlexStart}) {
    const std::string text = scaled_text(cluster, "  vary: {nodes: 1..4}\n  objective: cost\n");
    const planner::Answer all = scaled_answer(text, false), pruned = scaled_answer(text, true);
    for (const planner::RankedPlan& p : pruned.plans) {
      const auto same = std::ranges::find_if(
          all.plans, [&](const planner::RankedPlan& q) { return q.split.nodes == p.split.nodes; });
      REQUIRE(same != all.plans.end());
      CHECK(same->result.score == p.result.score);
    }
    CHECK(pruned.plans.front().split.nodes == all.plans.front().split.nodes);
  }
}

TEST_CASE("flex-start's nodes are searched, and named as what they are") {
  const planner::Answer answer =
      scaled_answer(scaled_text(kFlexStart, "  vary: {nodes: [1, 2]}\n  objective: time\n"), true);
  REQUIRE_FALSE(answer.plans.empty());
  const planner::RankedPlan& best = answer.plans.front();
  CHECK(best.split.nodes == 2);
  CHECK(planner::bought_text(best.offer, 2) == "flex_start_queued by the cluster-autoscaler");
}

TEST_CASE("what another decides is refused with what to do instead") {
  const std::string wrong = scaled_mistake(scaled_text(
      kKarpenter,
      "  vary: {nodes: 1..2, machine: [p3.2xlarge], pricing: [spot], autoscaling: [0..100%]}\n"));
  CHECK_THAT(wrong, Contains("under Karpenter the pool's machine says what a pod asks for"));
  CHECK_THAT(wrong, Contains("--sweep cluster.pools.v100.machine=A,B"));
  CHECK_THAT(wrong, Contains("Karpenter decides how nodes are bought"));
  CHECK_THAT(wrong, Contains("karpenter.sh/capacity-type"));
  CHECK_THAT(wrong, Contains("Karpenter makes as many nodes as the job needs"));
}
