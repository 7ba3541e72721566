#include "sim/queue/karpenter/packing.h"

#include <catch2/catch.hpp>
#include <map>

#include "pools.h"
#include "sim/base/random.h"

// Karpenter's bin packing [karpenter.sh, "Scheduling"; scheduler.go and queue.go of
// kubernetes-sigs/karpenter].
using namespace reckon;
using namespace reckon::test;

namespace {

const std::vector<LaunchOffering>& sizes() {
  static const std::vector<LaunchOffering> types{
      cpu_type("large", 2, 0.10), cpu_type("xlarge", 4, 0.19), cpu_type("2xlarge", 8, 0.37),
      cpu_type("4xlarge", 16, 0.80)};
  return types;
}

Packing packed(const std::vector<PackedPod>& pods, const std::vector<RoomOfNode>& nodes = {},
               const std::vector<LaunchOffering>& types = sizes(),
               std::vector<NodePoolSpec> pools = {plain_pool()}) {
  std::vector<LimitsLeft> left;
  for (const NodePoolSpec& pool : pools) left.push_back(limits_of(pool));
  return pack_pods(pods, nodes, types, pools, left);
}

std::vector<std::string> names(const std::vector<LaunchOffering>& types, const NodeClaim& claim) {
  std::vector<std::string> out;
  for (const std::size_t o : claim.offerings) out.push_back(types[o].type);
  return out;
}

}  // namespace

TEST_CASE("a NodeClaim is sized for all pods of the batch, the cheapest type that holds them") {
  // Four pods of 2 CPUs need 8: not four nodes of the smallest type that would hold one.
  const Packing p = packed(cpu_pods({2, 2, 2, 2}));
  REQUIRE(p.claims.size() == 1);
  CHECK(p.claims[0].pods.size() == 4);
  CHECK(names(sizes(), p.claims[0]) == std::vector<std::string>{"2xlarge", "4xlarge"});
}

TEST_CASE("a NodeClaim grows to the largest type, and the rest of the batch gets another") {
  // 11 pods of 2 CPUs: 16 CPUs hold eight of them, and three are left, for 6 CPUs.
  const Packing p = packed(cpu_pods(std::vector<int>(11, 2)));
  REQUIRE(p.claims.size() == 2);
  std::map<std::size_t, std::string> cheapest;  // by number of pods
  for (const NodeClaim& c : p.claims) cheapest[c.pods.size()] = names(sizes(), c).front();
  CHECK(cheapest == std::map<std::size_t, std::string>{{3, "2xlarge"}, {8, "4xlarge"}});
}

TEST_CASE("pods are packed by CPU, the largest first") {
  // In the order given 1, 1 and 15 would share no node of 16; sorted, 15 + 1 do, and 1 is left.
  const Packing p = packed(cpu_pods({1, 1, 15}));
  REQUIRE(p.claims.size() == 2);
  CHECK(p.claims[0].pods.size() + p.claims[1].pods.size() == 3);
  for (const NodeClaim& c : p.claims)
    if (c.pods.size() == 2) CHECK(c.pods == std::vector<std::size_t>{2, 0});
}

TEST_CASE("a pod joins the NodeClaim with the fewest pods that can still hold it") {
  // 10 and 9 CPUs cannot share a node of 16. Of four pods of one CPU each claim gets two in turns.
  const Packing p = packed(cpu_pods({10, 9, 1, 1, 1, 1}));
  REQUIRE(p.claims.size() == 2);
  CHECK(p.claims[0].pods.size() == 3);
  CHECK(p.claims[1].pods.size() == 3);
}

TEST_CASE("pods go to nodes that are there first, ready ones before those that come") {
  const std::vector<RoomOfNode> nodes{{7, {4000, 16384, 0}, false}, {3, {2000, 16384, 0}, true}};
  const Packing p = packed(cpu_pods({2, 2, 2, 2}), nodes);
  using Place = Packing::Place;
  CHECK(p.places ==
        std::vector{Place::ready_node, Place::coming_node, Place::coming_node, Place::claim});
  CHECK(p.claims.size() == 1);
}

TEST_CASE("the NodePool of the highest weight serves pods, the next where it cannot") {
  std::vector<LaunchOffering> types{cpu_type("small", 4, 0.01),
                                    cpu_type("big", 4, 1, CapacityType::on_demand, 1)};
  const auto pool_of = [&](const std::vector<NodePoolSpec>& pools) {
    return packed(cpu_pods({2}), {}, types, pools).claims.at(0).node_pool;
  };
  CHECK(pool_of({plain_pool("a"), plain_pool("b", 10)}) == 1);
  CHECK(pool_of({plain_pool("a"), plain_pool("b")}) == 0);
  std::vector<NodePoolSpec> limited{plain_pool("a"), plain_pool("b", 10)};
  limited[1].limits.cpu = 3;
  CHECK(pool_of(limited) == 0);
}

TEST_CASE("a NodeClaim takes its largest type from the limits, for it may be the one it gets") {
  NodePoolSpec pool = plain_pool();
  pool.limits.cpu = 20;
  // The first claim may become 16 CPUs, which leaves 4: the second is of 4 at most.
  const Packing p = packed(cpu_pods({9, 9, 3}), {}, sizes(), {pool});
  CHECK(p.limited);
  using Place = Packing::Place;
  CHECK(p.places == std::vector{Place::claim, Place::nowhere, Place::claim});
  // 9 + 3 CPUs fit the first, so that nothing is left for a second of 9.
  REQUIRE(p.claims.size() == 1);
  pool.limits.cpu = 32;
  CHECK(packed(cpu_pods({9, 9, 3}), {}, sizes(), {pool}).claims.size() == 2);
}

TEST_CASE("packed pods are within one offering of their claim, and none is lost") {
  for (std::uint32_t which = 0; which < 200; ++which) {
    RandomStream dice(20, which, Purpose{"packing"}, 0);
    std::vector<int> cpus;
    for (int k = 0; k < 30; ++k) cpus.push_back(1 + int(dice.uniform() * 12));
    const std::vector<PackedPod> pods = cpu_pods(cpus);
    const Packing p = packed(pods, {{0, {6000, 6144, 0}, true}});
    std::size_t in_claims = 0;
    for (const NodeClaim& c : p.claims) {
      NodeRoom sum;
      for (const std::size_t pod : c.pods) sum += pods[pod].asks;
      CHECK(sum == c.asks);
      for (const std::size_t o : c.offerings) CHECK(sizes()[o].allocatable.holds(sum));
      CHECK(!c.offerings.empty());
      in_claims += c.pods.size();
    }
    CHECK(in_claims == std::size_t(std::ranges::count(p.places, Packing::Place::claim)));
    CHECK(std::ranges::count(p.places, Packing::Place::nowhere) == 0);
  }
}
