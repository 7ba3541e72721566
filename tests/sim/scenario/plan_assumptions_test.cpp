#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "support/plans.h"
#include "support/scenario_text.h"

using namespace reckon;

namespace {
std::map<std::string, PlanAssumption> by_key(const Plan& plan) {
  std::map<std::string, PlanAssumption> rows;
  for (PlanAssumption& a : assumptions_of(plan)) rows.emplace(a.key, a);
  return rows;
}
}  // namespace

TEST_CASE("a plan of known numbers rests on no assumption") {
  CHECK(assumptions_of(test::make_round_plan(test::small_mlp(), StrategyKind::single)).empty());
}

TEST_CASE(
    "an assumed number is listed with its range, and its setter reaches the place it came from") {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 2, 2);
  plan.pools[0].efficiency.matmul = Fact<double>{0.5, 0.4, 0.6, SourceId::user};
  plan.pools[0].network_link.latency =
      Fact<Seconds>{Seconds{4e-5}, Seconds{2e-5}, Seconds{8e-5}, SourceId::user};
  const auto rows = by_key(plan);
  REQUIRE(rows.size() == 2);
  const PlanAssumption& matmul = rows.at("pools.workers.efficiency.matmul");
  CHECK(matmul.affects_step);
  CHECK(matmul.low == 0.4);
  CHECK(matmul.high == 0.6);
  matmul.set(plan, 0.45);
  CHECK(plan.pools[0].efficiency.matmul.value == 0.45);
  rows.at("pools.workers.network_link.latency").set(plan, 1e-5);
  CHECK(plan.pools[0].network_link.latency.value == Seconds{1e-5});
}

TEST_CASE("assumptions about what the plan does not use are left out") {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::single);
  const Fact<double> assumed{0.5, 0.4, 0.6, SourceId::user};
  plan.pools[0].efficiency.convolution = assumed;  // an MLP has no convolutions
  plan.pools[0].peer_link.efficiency = assumed;    // one accelerator talks to none
  plan.pools[0].network_link.efficiency = assumed;
  plan.maintenance.every =
      Fact<Seconds>{Seconds{1}, Seconds{1}, Seconds{2}, SourceId::user};  // off
  CHECK(assumptions_of(plan).empty());
}

TEST_CASE("keys of assumptions are unique, ranges enclose their values") {
  for (const char* name :
       {"gke-p100-autoscaling", "ai-platform-t4", "tpu-v2-half-pod", "spot-month", "maintenance"}) {
    const Expected<Plan> plan = test::shipped_plan(name);
    REQUIRE(plan);
    std::set<std::string> keys;
    for (const PlanAssumption& a : assumptions_of(*plan)) {
      INFO(name << " " << a.key);
      CHECK(keys.insert(a.key).second);
      CHECK(a.low <= a.value);
      CHECK(a.value <= a.high);
      Plan changed = *plan;
      a.set(changed, a.high);
      const auto after = by_key(changed);
      CHECK(after.find(a.key) != after.end());  // still assumed, now with the value set
      CHECK(after.at(a.key).value == a.high);
    }
  }
}
