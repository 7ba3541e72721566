#include <catch2/catch.hpp>
#include <numeric>

#include "pools.h"
#include "sim/queue/karpenter/consolidation.h"

// minValues of a NodePool's requirements [karpenter.sh, "NodePools", "Min Values"].
using namespace reckon;
using namespace reckon::test;

namespace {

NodePoolSpec wanting(std::vector<std::pair<std::string, int>> least, int weight = 0,
                     const std::string& name = "default") {
  NodePoolSpec spec = plain_pool(name, weight);
  for (auto& [key, values] : least)
    spec.requirements.push_back({key, RequirementOperator::Exists, {}, values});
  return spec;
}

/// Types whose only label with minValues is their name.
LaunchOffering named_type(const std::string& type, int cpus, double usd,
                          CapacityType capacity = CapacityType::on_demand,
                          std::size_t node_pool = 0) {
  LaunchOffering out = cpu_type(type, cpus, usd, capacity, node_pool);
  out.values = {type};
  return out;
}

constexpr const char* kTypes = "node.kubernetes.io/instance-type";

std::vector<std::size_t> all_of(const std::vector<LaunchOffering>& types) {
  std::vector<std::size_t> all(types.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

TEST_CASE("the example of SatisfiesMinValues: three types of three families, not of two") {
  const NodePoolSpec spec = wanting({{kTypes, 3}, {"karpenter.kwok.sh/instance-family", 3}});
  const auto types = [](std::vector<std::pair<std::string, std::string>> labels) {
    std::vector<LaunchOffering> out;
    for (const auto& [type, family] : labels) {
      out.push_back(cpu_type(type, 2, 0.1));
      out.back().values = {type, family};
    }
    return out;
  };
  const auto passes = types({{"c4.large", "c4"}, {"c5.xlarge", "c5"}, {"m4.2xlarge", "m4"}});
  CHECK(meets_min_values(spec, passes, all_of(passes)));
  const auto fails = types({{"c4.large", "c4"}, {"c4.xlarge", "c4"}, {"c5.2xlarge", "c5"}});
  CHECK_FALSE(meets_min_values(spec, fails, all_of(fails)));
}

TEST_CASE("a type under two capacity types is one value") {
  const std::vector<LaunchOffering> types{named_type("a", 2, 0.1),
                                          named_type("a", 2, 0.05, CapacityType::spot)};
  CHECK_FALSE(meets_min_values(wanting({{kTypes, 2}}), types, all_of(types)));
}

TEST_CASE("a pod joins no claim that would keep fewer types than minValues") {
  // Three pods of 2 CPUs need the 2xlarge together; two of them leave two types.
  const std::vector<LaunchOffering> types{named_type("large", 2, 0.1), named_type("xlarge", 4, 0.2),
                                          named_type("2xlarge", 8, 0.4)};
  const auto pods = cpu_pods({2, 2, 2});
  const auto claims_under = [&](const NodePoolSpec& spec) {
    const std::vector<NodePoolSpec> pools{spec};
    return pack_pods(pods, {}, types, pools, {limits_of(spec)}).claims;
  };
  CHECK(claims_under(plain_pool()).size() == 1);
  const auto claims = claims_under(wanting({{kTypes, 2}}));
  REQUIRE(claims.size() == 2);
  for (const NodeClaim& claim : claims) CHECK(claim.offerings.size() >= 2);
  CHECK(claims_under(wanting({{kTypes, 3}})).size() == 3);
  CHECK(claims_under(wanting({{kTypes, 4}})).empty());
}

TEST_CASE("where minValues cannot be met the next NodePool serves the pod") {
  const std::vector<NodePoolSpec> pools{wanting({{kTypes, 2}}, 10, "flexible"), plain_pool("rest")};
  std::vector<LaunchOffering> types{named_type("large", 2, 0.1), named_type("xlarge", 4, 0.2)};
  types.push_back(cpu_type("large", 2, 0.1, CapacityType::on_demand, 1));
  types.push_back(cpu_type("xlarge", 4, 0.2, CapacityType::on_demand, 1));
  const std::vector<LimitsLeft> left(2);
  const auto pools_of = [&](const std::vector<int>& cpus, const std::vector<bool>& unavailable) {
    std::vector<std::size_t> out;
    for (const NodeClaim& c : pack_pods(cpu_pods(cpus), {}, types, pools, left, unavailable).claims)
      out.push_back(c.node_pool);
    return out;
  };
  CHECK(pools_of({2}, {}) == std::vector<std::size_t>{0});
  CHECK(pools_of({4}, {}) == std::vector<std::size_t>{1});  // only one type of `flexible` holds it
  // A type without capacity counts for nothing.
  CHECK(pools_of({2}, {true, false, false, false}) == std::vector<std::size_t>{1});
  CHECK(pools_of({2}, {true, false, true, true}).empty());
}

TEST_CASE("a node is replaced only where as many cheaper types remain as minValues asks for") {
  const std::vector<LaunchOffering> types{named_type("large", 2, 0.1), named_type("xlarge", 4, 0.2),
                                          named_type("2xlarge", 8, 0.4)};
  const Candidate node{0, 2, 1, {{0, {2000, 2048, 0}}}};
  const std::vector<RoomOfNode> rooms{{0, {6000, 8 * 4096 - 2048, 0}, true}};
  const auto replaced_under = [&](int least) {
    const std::vector<NodePoolSpec> pools{wanting({{kTypes, least}})};
    return consolidate({types, pools, rooms, {}, {limits_of(pools[0])}}, std::span(&node, 1));
  };
  REQUIRE(replaced_under(2));
  CHECK(replaced_under(2)->replacement->offerings == std::vector<std::size_t>{0, 1});
  CHECK_FALSE(replaced_under(3));
}

TEST_CASE("spot by spot: of the cheapest types 15 are in question, or as many as minValues needs") {
  std::vector<LaunchOffering> types;
  for (int k = 0; k < 20; ++k)
    types.push_back(named_type(std::to_string(k), 2, 0.01 * (k + 1), CapacityType::spot));
  types.push_back(named_type("own", 2, 1, CapacityType::spot));
  const Candidate node{0, 20, 1, {{0, {2000, 2048, 0}}}};
  const std::vector<RoomOfNode> rooms{{0, {0, 8192 - 2048, 0}, true}};
  const auto in_question = [&](int least) {
    const std::vector<NodePoolSpec> pools{wanting({{kTypes, least}})};
    const auto command =
        consolidate({types, pools, rooms, {}, {limits_of(pools[0])}, true}, std::span(&node, 1));
    return command ? command->replacement->offerings.size() : 0;
  };
  CHECK(in_question(2) == 15);
  CHECK(in_question(18) == 18);
  CHECK(in_question(21) == 0);  // 20 cost less
}

TEST_CASE("what replaces a drifted node is as many nodes as it takes, at any price") {
  const std::vector<LaunchOffering> types{named_type("large", 2, 0.5)};
  const std::vector<NodePoolSpec> pools{plain_pool()};
  const Candidate node{0, 0, 2, {{0, {2000, 2048, 0}}, {1, {2000, 2048, 0}}}};
  std::vector<RoomOfNode> rooms{{0, {0, 0, 0}, true}};
  const auto made = [&]() -> std::optional<std::size_t> {
    const auto claims = replacements_of({types, pools, rooms, {}, {limits_of(pools[0])}}, node);
    return claims ? std::optional(claims->size()) : std::nullopt;
  };
  CHECK(made() == 2);
  rooms.push_back({1, {2000, 8192, 0}, true});
  CHECK(made() == 1);
  rooms.back().ready = false;
  CHECK_FALSE(made());  // pods may not wait for a node that is coming
}
