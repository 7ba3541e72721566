#include "sim/queue/karpenter/consolidation.h"

#include <catch2/catch.hpp>

#include "pools.h"

// Consolidation [karpenter.sh, "Disruption", "Consolidation" and "Spot consolidation"; examples of
// kubernetes-sigs/karpenter pkg/controllers/disruption and designs/spot-consolidation.md].
using namespace reckon;
using namespace reckon::test;

namespace {

/// Nodes of some types, each with pods of so many CPUs; all of them are candidates.
struct Nodes {
  std::vector<LaunchOffering> types;
  std::vector<NodePoolSpec> pools{plain_pool()};
  std::vector<RoomOfNode> rooms{};
  std::vector<Candidate> candidates{};
  std::vector<PackedPod> pending{};
  bool spot_to_spot = false;
  std::size_t pods = 0;

  std::size_t type_of(const std::string& name, CapacityType capacity) const {
    for (std::size_t o = 0; o < types.size(); ++o)
      if (types[o].type == name && types[o].capacity == capacity) return o;
    FAIL(name);
    return 0;
  }
  void add(const std::string& type, const std::vector<int>& cpus,
           CapacityType capacity = CapacityType::on_demand) {
    const std::size_t o = type_of(type, capacity);
    Candidate c{candidates.size(), o, double(cpus.size()), {}};
    RoomOfNode room{candidates.size(), types[o].allocatable, true};
    for (const int cpu : cpus) {
      c.pods.push_back({pods++, {cpu * 1000, cpu * 1024, 0}});
      room.free -= c.pods.back().asks;
    }
    rooms.push_back(room);
    candidates.push_back(c);
  }
  ConsolidationView view() const {
    std::vector<LimitsLeft> left;
    for (const NodePoolSpec& pool : pools) left.push_back(limits_of(pool));
    return {types, pools, rooms, pending, left, spot_to_spot};
  }
  std::optional<ConsolidationCommand> one(std::size_t k) const {
    return consolidate(view(), std::span(&candidates[k], 1));
  }
  std::optional<ConsolidationCommand> several() const {
    return consolidate_several(view(), candidates);
  }
  std::vector<std::string> types_of(const std::optional<ConsolidationCommand>& command) const {
    std::vector<std::string> out;
    if (command && command->replacement)
      for (const std::size_t o : command->replacement->offerings) out.push_back(types[o].type);
    return out;
  }
};

std::vector<LaunchOffering> t3a() {
  return {cpu_type("t3a.nano", 2, 0.0047), cpu_type("t3a.small", 2, 0.0188),
          cpu_type("t3a.xlarge", 4, 0.1504), cpu_type("t3a.2xlarge", 8, 0.3008)};
}

}  // namespace

TEST_CASE("Deletion: a node goes if its pods can run on free capacity of the others") {
  Nodes n{t3a()};
  n.add("t3a.2xlarge", {3});
  n.add("t3a.2xlarge", {4});
  const auto command = n.one(0);
  REQUIRE(command);
  CHECK_FALSE(command->replacement);
  CHECK(command->nodes == std::vector<std::size_t>{0});
  // Not onto a node that is still coming, nor into room that pending pods take.
  n.rooms[1].ready = false;
  n.types = {cpu_type("t3a.2xlarge", 8, 0.3008)};
  n.candidates[0].offering = n.candidates[1].offering = 0;
  CHECK_FALSE(n.one(0));
  n.rooms[1].ready = true;
  CHECK(n.one(0));
  n.pending = {{100, {4000, 4096, 0}}};
  CHECK_FALSE(n.one(0));
}

TEST_CASE("Replace: by one node that costs less, and by no more than one") {
  Nodes n{t3a()};
  n.add("t3a.2xlarge", {3});
  CHECK(n.types_of(n.one(0)) == std::vector<std::string>{"t3a.xlarge"});
  Nodes full{t3a()};
  full.add("t3a.2xlarge", {3, 3});  // two of xlarge would cost as much and are two
  CHECK_FALSE(full.one(0));
}

TEST_CASE("several nodes are replaced by one that costs less than all of them") {
  Nodes n{{cpu_type("m.xlarge", 4, 0.20), cpu_type("m.2xlarge", 8, 0.37),
           cpu_type("m.4xlarge", 16, 0.85)}};
  for (int k = 0; k < 4; ++k) n.add("m.xlarge", {3});
  // Two: 6 CPUs for 0.37 instead of 0.40. Three and four would cost 0.85 instead of 0.60 and 0.80.
  const auto command = n.several();
  REQUIRE(command);
  CHECK(command->nodes == std::vector<std::size_t>{0, 1});
  CHECK(n.types_of(command) == std::vector<std::string>{"m.2xlarge"});
  CHECK_FALSE(n.one(0));
}

TEST_CASE("binary search looks at fewer nodes where the middle does not do, whatever more would") {
  Nodes n{{cpu_type("m.xlarge", 4, 0.20), cpu_type("m.2xlarge", 8, 0.37),
           cpu_type("m.4xlarge", 16, 0.70)}};
  for (int k = 0; k < 4; ++k) n.add("m.xlarge", {3});
  // Four would go for 0.70 instead of 0.80. Three, which are looked at first, would not.
  CHECK(consolidate(n.view(), n.candidates));
  CHECK(n.several()->nodes.size() == 2);
}

TEST_CASE("the example of filterOutSameType: t3a.small could have stayed") {
  Nodes n{t3a()};
  n.types.erase(n.types.begin());  // without nano
  n.add("t3a.small", {1});
  n.add("t3a.2xlarge", {});
  n.add("t3a.2xlarge", {});
  for (Candidate& c : n.candidates)
    if (!c.pods.empty()) c.pods[0].asks = {1500, 6000, 0};
  n.rooms[0].free = {500, 2192, 0};
  // [2xlarge, 2xlarge, small] -> small, xlarge or 2xlarge: nothing is gained over two deletions.
  CHECK_FALSE(consolidate(n.view(), n.candidates));
  // With a nano in question the three become one nano.
  n.types.push_back(cpu_type("t3a.nano", 2, 0.0047));
  CHECK(n.types_of(consolidate(n.view(), n.candidates)) == std::vector<std::string>{"t3a.nano"});
}

TEST_CASE("multi-node consolidation takes at most 100 nodes, the cheapest to disrupt first") {
  Nodes n{{cpu_type("small", 2, 0.1), cpu_type("huge", 1000, 1)}};
  for (int k = 0; k < 130; ++k) n.add("small", {2});
  const auto command = n.several();
  REQUIRE(command);
  CHECK(command->nodes.size() == 101);  // candidates[0 : mid+1] with mid up to 100
  CHECK(command->nodes.front() == 0);
  CHECK(command->nodes.back() == 100);
  n.candidates.resize(1);
  CHECK_FALSE(n.several());
}

TEST_CASE("binary search finds the most nodes that one replacement holds") {
  Nodes n{{cpu_type("small", 2, 0.1), cpu_type("large", 14, 0.4)}};
  for (int k = 0; k < 20; ++k) n.add("small", {2});
  // Seven pods fill a large one, which costs less than five small ones.
  const auto command = n.several();
  REQUIRE(command);
  CHECK(command->nodes.size() == 7);
}

TEST_CASE("a node on demand is replaced by spot only, where its NodePool has spot") {
  Nodes n{{cpu_type("a", 8, 0.40), cpu_type("b", 8, 0.30),
           cpu_type("a", 8, 0.50, CapacityType::spot), cpu_type("c", 8, 0.20, CapacityType::spot)}};
  n.add("a", {6});
  const auto command = n.one(0);
  CHECK(n.types_of(command) == std::vector<std::string>{"c"});  // b is cheaper, and on demand
  n.types.resize(2);
  CHECK(n.types_of(n.one(0)) == std::vector<std::string>{"b"});
}

TEST_CASE("spot by spot: 15 cheaper types for one node, none of that for several, and the gate") {
  Nodes n{{cpu_type("own", 8, 1, CapacityType::spot)}};
  const auto add_cheaper = [&](int count) {
    for (int k = 0; k < count; ++k)
      n.types.push_back(
          cpu_type("c" + std::to_string(n.types.size()), 8, 0.5 + 0.01 * k, CapacityType::spot));
  };
  n.add("own", {5}, CapacityType::spot);
  add_cheaper(14);
  n.spot_to_spot = true;
  CHECK_FALSE(n.one(0));
  n.types.push_back(cpu_type("fifteenth", 8, 0.99, CapacityType::spot));
  REQUIRE(n.one(0));
  CHECK(n.one(0)->replacement->offerings.size() == 15);
  n.types.push_back(cpu_type("sixteenth", 8, 0.995, CapacityType::spot));
  CHECK(n.one(0)->replacement->offerings.size() == 15);
  n.spot_to_spot = false;
  CHECK_FALSE(n.one(0));
  // Several: two nodes of 5 CPUs each by one of 10, of which there is one type.
  Nodes two{
      {cpu_type("own", 8, 1, CapacityType::spot), cpu_type("ten", 10, 1.5, CapacityType::spot)}};
  two.add("own", {5}, CapacityType::spot);
  two.add("own", {5}, CapacityType::spot);
  CHECK_FALSE(two.several());
  two.spot_to_spot = true;
  CHECK(two.types_of(two.several()) == std::vector<std::string>{"ten"});
}

TEST_CASE("the design's example: three of four pods of 24 CPUs end, and the node is too large") {
  // "A customer with 4 x 24cpu pods would launch a 24xl (96cpu) instance type. If three of the four
  // pods complete, the node will indefinitely run at 25 %": on demand a smaller one replaces it.
  Nodes n{{cpu_type("6xl", 24, 1.2), cpu_type("24xl", 96, 4.6)}};
  n.add("24xl", {24});
  CHECK(n.types_of(n.one(0)) == std::vector<std::string>{"6xl"});
  Nodes spot{{cpu_type("6xl", 24, 1.2, CapacityType::spot),
              cpu_type("24xl", 96, 4.6, CapacityType::spot)}};
  spot.add("24xl", {24}, CapacityType::spot);
  CHECK_FALSE(spot.one(0));
}

TEST_CASE("fewer pods, a node that expires soon and lower priorities are disrupted first") {
  const std::vector<int> one{0}, two{0, 0}, high{1 << 25};
  CHECK(disruption_cost_of(one, 1) == 1);
  CHECK(disruption_cost_of(two, 1) == 2);
  CHECK(disruption_cost_of(two, 0.25) == 0.5);
  CHECK(disruption_cost_of(high, 1) == 2);
  const std::vector<int> system_critical{2'000'000'000};
  CHECK(disruption_cost_of(system_critical, 1) == 10);
}

TEST_CASE("what is launched is spot where a claim has it, the cheapest of that kind") {
  const std::vector<LaunchOffering> types{cpu_type("a", 2, 0.1),
                                          cpu_type("b", 2, 0.2, CapacityType::spot),
                                          cpu_type("c", 2, 0.3, CapacityType::spot)};
  CHECK(launch_order(types, std::vector<std::size_t>{0, 1, 2}) ==
        std::vector<std::size_t>{1, 2, 0});
  CHECK(launch_order(types, std::vector<std::size_t>{0}) == std::vector<std::size_t>{0});
}
