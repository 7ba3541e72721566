#include <catch2/catch.hpp>
#include <cmath>

#include "lives.h"
#include "sim/cluster/autoscalers/expanders.h"
#include "sim/cluster/disruptions.h"

// Expanders of the cluster-autoscaler and balanced node groups [kubernetes/autoscaler,
// cluster-autoscaler/FAQ.md and cluster-autoscaler/expander].
using namespace reckon;
using namespace reckon::test;

namespace {

/// A job of `nodes` nodes; its pool, of 16 vCPUs and 64 GB a node, is one node group.
Case with_expanders(std::vector<Expander> chain, int nodes = 1, int most = 8) {
  Case c = round_case(nodes);
  autoscale(c, 0, 0, most);
  c.plan.cluster_autoscaler.emplace().expander = std::move(chain);
  return c;
}

/// Another node group for the same pods, so many times as large and as dear.
PlannedPool& add_group(Case& c, const std::string& name, double size, double price, int most = 8) {
  PlannedPool other = c.plan.pools[0];
  other.name = name;
  other.machine.name = name;
  other.machine.vcpus = int(16 * size);
  other.machine.memory = Fact<Bytes>{Bytes{64e9 * size}};
  other.price.machine = scaled(other.price.machine, price);
  other.price.accelerators = scaled(other.price.accelerators, price);
  other.nodes_max = most;
  other.fallback_for = 0;
  c.plan.pools.push_back(other);
  return c.plan.pools.back();
}

std::vector<std::uint32_t> chosen(const Case& c, std::vector<ScaleUpOption> options,
                                  int cluster_nodes = 0) {
  RandomStream random{1, 0, kExpander, 0};
  const auto& spec = *c.plan.cluster_autoscaler;
  const ScaleUpQuestion question{.rented = c.plan,
                                 .cluster_nodes = cluster_nodes,
                                 .existing = std::vector<bool>(c.plan.pools.size(), true)};
  std::vector<std::uint32_t> pools;
  for (const ScaleUpOption& o : best_options(spec.expander, std::move(options), question,
                                             pool_priorities(spec.priorities, c.plan), random))
    pools.push_back(o.pool);
  return pools;
}

using Pools = std::vector<std::uint32_t>;

double node_seconds(const LifeResult& life, std::size_t pool) {
  return std::round(to_seconds(life.node_time[pool]).count() * 1e3) / 1e3;
}

}  // namespace

TEST_CASE("most-pods takes the group that serves the most, least-nodes the one that needs fewest") {
  Case c = with_expanders({Expander::most_pods});
  add_group(c, "b", 1, 1);
  add_group(c, "c", 1, 1);
  CHECK(chosen(c, {{0, 2}, {1, 5}, {2, 5}}) == Pools{1, 2});
  c.plan.cluster_autoscaler->expander = {Expander::least_nodes};
  CHECK(chosen(c, {{0, 2}, {1, 5}, {2, 5}}) == Pools{0});
}

TEST_CASE("least-waste takes the least idle share of vCPUs and memory together") {
  Case c = with_expanders({Expander::least_waste});
  add_group(c, "twice", 2, 1);  // 1/2 of the vCPUs and 1/2 of the memory idle: 1
  PlannedPool& memory = add_group(c, "memory", 1, 1);
  memory.machine.memory = Fact<Bytes>{Bytes{256e9}};  // none and 3/4: 0.75
  CHECK(chosen(c, {{1, 1}, {2, 1}}) == Pools{2});
  CHECK(chosen(c, {{0, 1}, {1, 1}, {2, 1}}) == Pools{0});
}

TEST_CASE("price weighs a node's price with how far its vCPUs are from the preferred ones") {
  Case c = with_expanders({Expander::price});
  add_group(c, "large", 2, 0.9);
  // With accelerators the unfitness is the same for all, and the cheaper one wins.
  CHECK(chosen(c, {{0, 1}, {1, 1}}) == Pools{1});
  for (PlannedPool& pool : c.plan.pools) {
    pool.accelerator.reset();
    pool.accelerators_per_node = 0;
  }
  // A cluster of two nodes prefers 1 vCPU: 16 x 1.0 against 32 x 0.9.
  CHECK(chosen(c, {{0, 1}, {1, 1}}, 2) == Pools{0});
  // One of 200 prefers 16: 1 x 1.0 against 2 x 0.9; one of 201 prefers 32: 2 against 0.9.
  CHECK(chosen(c, {{0, 1}, {1, 1}}, 200) == Pools{0});
  CHECK(chosen(c, {{0, 1}, {1, 1}}, 201) == Pools{1});
  // So many nodes at once make the size matter no more: tanh(99 / 15) is 1 but for 4e-6.
  CHECK(chosen(c, {{0, 100}, {1, 100}}, 2) == Pools{1});
}

TEST_CASE("the preferred node doubles each time the cluster triples") {
  CHECK(preferred_vcpus(0) == 1);
  CHECK(preferred_vcpus(2) == 1);
  CHECK(preferred_vcpus(3) == 2);
  CHECK(preferred_vcpus(20) == 4);
  CHECK(preferred_vcpus(60) == 8);
  CHECK(preferred_vcpus(201) == 32);
}

// The ConfigMap of cluster-autoscaler/expander/priority/readme.md.
TEST_CASE("priority takes the groups of the highest priority whose expression is found") {
  Case c = with_expanders({Expander::priority});
  c.plan.pools[0].name = "eks-t2.large-1";
  add_group(c, "eks-t3.large-1", 1, 1);
  add_group(c, "eks-m4.4xlarge-1", 1, 1);
  add_group(c, "eks-p3.2xlarge-1", 1, 1);
  c.plan.cluster_autoscaler->priorities = {{10, {R"(.*t2\.large.*)", R"(.*t3\.large.*)"}},
                                           {50, {R"(.*m4\.4xlarge.*)"}}};
  CHECK(chosen(c, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}) == Pools{2});
  CHECK(chosen(c, {{0, 1}, {1, 1}, {3, 1}}) == Pools{0, 1});
  CHECK(chosen(c, {{3, 1}}) == Pools{3});  // none has a priority: none is left out
}

TEST_CASE("a chain of expanders breaks the ties of the first by the second") {
  Case c = with_expanders({Expander::priority, Expander::least_waste});
  add_group(c, "small", 1.5, 1);
  add_group(c, "large", 3, 1);
  c.plan.cluster_autoscaler->priorities = {{10, {"^workers"}}, {50, {"small|large"}}};
  CHECK(chosen(c, {{0, 1}, {1, 1}, {2, 1}}) == Pools{1});
  c.plan.cluster_autoscaler->expander = {Expander::least_waste, Expander::priority};
  CHECK(chosen(c, {{0, 1}, {1, 1}, {2, 1}}) == Pools{0});
}

TEST_CASE("random takes each group as often") {
  Case c = with_expanders({Expander::random});
  add_group(c, "b", 1, 1);
  int first = 0;
  constexpr int kRuns = 400;
  for (c.options.replication = 0; c.options.replication < kRuns; ++c.options.replication)
    first += node_seconds(c.run(), 0) > 0 ? 1 : 0;
  CHECK(std::abs(first - kRuns / 2) < 40);  // four standard deviations of 10
}

TEST_CASE("a job runs on the nodes of the group that the expander takes") {
  Case c = with_expanders({Expander::price}, 2);
  add_group(c, "cheap", 1, 0.5);
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 0 + 100 + 1000);
  CHECK(node_seconds(life, 0) == 0);
  CHECK(node_seconds(life, 1) == 2 * 1700);  // deleted 10 min after the end
}

TEST_CASE("pods that one group has no room for wait for the next scan") {
  Case c = with_expanders({Expander::price}, 3);
  add_group(c, "cheap", 1, 0.5, 2);
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 10 + 100 + 1000);
  CHECK(node_seconds(life, 1) == 2 * (1110 + 600));
  CHECK(node_seconds(life, 0) == 1110 + 600 - 10);
}

TEST_CASE("a group whose nodes did not come backs off, and the next best is taken") {
  Case c = with_expanders({Expander::price});
  add_group(c, "cheap", 1, 0.5).provisioning = Fact<Seconds>{Seconds{1000}};
  // Given up at the scan of 900, which asks for a node of the other group.
  CHECK(finish_seconds(c.run()) == 900 + 100 + 1000);
}

TEST_CASE("similar node groups are raised to equal sizes from the smallest") {
  const auto shares = [](std::vector<GroupSize> groups, int nodes) {
    std::vector<int> made;
    for (const ScaleUpOption& o : balanced(std::move(groups), nodes)) made.push_back(o.nodes);
    return made;
  };
  CHECK(shares({{0, 1, 9}, {1, 3, 9}}, 4) == std::vector<int>{3, 1});
  CHECK(shares({{0, 1, 9}, {1, 3, 9}}, 2) == std::vector<int>{2});
  CHECK(shares({{0, 0, 1}, {1, 0, 9}, {2, 0, 9}}, 7) == std::vector<int>{1, 3, 3});
  CHECK(shares({{0, 0, 1}, {1, 0, 1}}, 7) == std::vector<int>{1, 1});
}

TEST_CASE("with balance-similar-node-groups zones share the nodes, other machines have none") {
  Case c = with_expanders({Expander::least_waste}, 4);
  const Machine machine = c.plan.pools[0].machine;
  add_group(c, "zone-b", 1, 1).machine = machine;
  add_group(c, "larger", 2, 1);
  c.plan.cluster_autoscaler->balance_similar_node_groups = true;
  const LifeResult life = c.run();
  CHECK(node_seconds(life, 0) == 2 * 1700);
  CHECK(node_seconds(life, 1) == 2 * 1700);
  CHECK(node_seconds(life, 2) == 0);
}
