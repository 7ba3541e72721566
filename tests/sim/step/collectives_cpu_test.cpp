#include "sim/step/network/collectives_cpu.h"

#include <catch2/catch.hpp>

#include "support/fabrics.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

TEST_CASE("direct all-reduce sends a ring's bytes in two rounds") {
  // M = 14,400 bytes: 2 (40 us + (n-1) M / (n 1.25 GB/s)).
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 4);
  plan.pools.front().accelerator.reset();
  const auto network = make_fluid_network();
  const SimulatedCollectives simulated(*network);
  const ClosedForms formulas;
  const Bytes size{14'400};
  for (const int n : {2, 8}) {
    const double expected = 2 * (40e-6 + (n - 1) * 14'400.0 / n / 1.25e9);
    for (const CollectiveCost* cost : {static_cast<const CollectiveCost*>(&simulated),
                                       static_cast<const CollectiveCost*>(&formulas)}) {
      const auto direct = gradient_sum(plan, plan.jobs.front().strategy)(flat(n), size, *cost);
      CHECK(direct.algorithm == "direct");
      CHECK(direct.time.count() == Approx(expected).epsilon(1e-9));
      CHECK(direct.sent_by_rank == ring_all_reduce(flat(n), size).sent_by_rank);
    }
  }
}

TEST_CASE("workers on CPUs sum what fits into a first window directly, all else in a ring") {
  const ClosedForms cost;
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 4);
  PlannedStrategy& strategy = plan.jobs.front().strategy;
  const auto algorithm = [&](double bytes) {
    return gradient_sum(plan, strategy)(flat(4), Bytes{bytes}, cost).algorithm;
  };
  plan.pools.front().accelerator.reset();
  CHECK(algorithm(24) == "direct");
  CHECK(algorithm(14'600) == "direct");  // 10 segments of 1,460 bytes
  CHECK(algorithm(14'604) == "ring");
  // A tree of small messages would be faster: 2 ceil(log2 4) hops; but that is not what runs.
  CHECK(algorithm(20'000) == "ring");
  strategy.all_reduce = AllReduceKind::ring;
  CHECK(algorithm(24) == "ring");
  CHECK(runs_on_cpus(AllReduceKind::automatic));
  CHECK_FALSE(runs_on_cpus(AllReduceKind::tree));
}
