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

TEST_CASE("a step waits for the latency of a store that is asked for each of its samples") {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::single);
  PlannedWorkload& job = plan.jobs[0];
  job.checkpoint.storage.latency =
      Fact<Seconds>{Seconds{0.05}, Seconds{0.02}, Seconds{0.15}, SourceId::user};
  job.checkpoint.mode = CheckpointSpec::Mode::interval;
  CHECK_FALSE(by_key(plan).at("storage.latency").affects_step);
  job.data.path = "s3://photos/train-";
  CHECK(by_key(plan).at("storage.latency").affects_step);
  job.checkpoint.mode = CheckpointSpec::Mode::none;
  CHECK(by_key(plan).contains("storage.latency"));
}

TEST_CASE("the spread of steps and the hosts' memory are assumptions of those who wait for them") {
  const auto assume = [](Plan plan) {
    plan.framework.step_jitter = Fact<double>{0.03, 0.0, 0.1, SourceId::user};
    for (PlannedPool& pool : plan.pools)
      pool.cpu_memory_bandwidth_per_vcpu =
          Fact<BytesPerSecond>{2.5_GBps, 1.5_GBps, 4.0_GBps, SourceId::user};
    return plan;
  };
  const auto keys = [&](const Plan& plan) {
    std::set<std::string> names;
    for (const PlanAssumption& a : assumptions_of(assume(plan))) {
      CHECK(a.affects_step);
      names.insert(a.key);
    }
    return names;
  };
  using Keys = std::set<std::string>;
  using Kind = StrategyKind;
  const ModelGraph mlp = test::small_mlp();
  const std::string jitter = "framework.step_jitter";
  const std::string of_servers = "pools.servers.cpu_memory_bandwidth_per_vcpu";
  const std::string of_workers = "pools.workers.cpu_memory_bandwidth_per_vcpu";
  CHECK(keys(test::make_round_plan(mlp, Kind::single)).empty());
  CHECK(keys(test::make_round_plan(mlp, Kind::mirrored, 1, 4)).empty());  // one process
  CHECK(keys(test::make_round_plan(mlp, Kind::multi_worker_mirrored, 2, 1)) == Keys{jitter});
  CHECK(keys(test::make_round_plan(mlp, Kind::parameter_server, 2, 1, 1)) ==
        Keys{jitter, of_servers});
  // without a server process the variables are on a worker's host
  CHECK(keys(test::make_round_plan(mlp, Kind::parameter_server, 2, 1, 0)) ==
        Keys{jitter, of_workers});
  CHECK(keys(test::make_round_plan(mlp, Kind::single, 1, 0)) == Keys{of_workers});  // CPUs alone

  Plan plan = assume(test::make_round_plan(mlp, Kind::multi_worker_mirrored, 2, 1));
  by_key(plan).at(jitter).set(plan, 0.07);
  CHECK(plan.framework.step_jitter.value == 0.07);
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
      if (a.key.starts_with(kPriceOf)) {  // of a price that is given there is no range any more
        CHECK(after.find(a.key) == after.end());
        continue;
      }
      REQUIRE(after.find(a.key) != after.end());  // still assumed, now with the value set
      CHECK(after.at(a.key).value == a.high);
    }
  }
}
