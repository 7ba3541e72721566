#include <catch2/catch.hpp>

#include "runs.h"

// Nodes that Karpenter consolidates, and those that are taken from it, under jobs that run.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("Empty Node Consolidation goes in parallel, as far as the budgets let it") {
  KarpenterMarket market = market_of({cpu_type("large", 2, 0.10)});
  // Four nodes are free at 201. The look of 210 is done at 225, that of 230 at 245 and so on: a
  // tenth of five nodes, rounded up, is one.
  const auto jobs = jobs_asking({{0, 100, 4, 2}, {0, 1000, 1, 2}});
  const KarpenterRun one = karpenter_run(jobs, market);
  CHECK(of(one, ConsolidationKind::empty).commands == 4);
  CHECK(gone(one, 0) + gone(one, 1) + gone(one, 2) + gone(one, 3) + gone(one, 4) ==
        225 + 245 + 265 + 285 + 1101);
  market.spec.node_pools[0].budgets = {{.share = 1.0}};
  const KarpenterRun all = karpenter_run(jobs, market);
  CHECK(of(all, ConsolidationKind::empty).commands == 1);
  CHECK(of(all, ConsolidationKind::empty).nodes == 4);
  market.spec.node_pools[0].budgets = {{.nodes = 0, .reasons = {DisruptionReason::Empty}}};
  CHECK(of(karpenter_run(jobs, market), ConsolidationKind::empty).commands == 0);
  market.spec.node_pools[0].budgets.clear();
  market.spec.node_pools[0].consolidate_after.reset();  // Never
  CHECK(of(karpenter_run(jobs, market), ConsolidationKind::empty).commands == 0);
}

namespace {

/// Four nodes of 4 CPUs, each of which has a pod of 2 left from 201 on.
std::vector<JobRequest> leaves_four_halves() {
  std::vector<PodsAsked> asked;
  for (int k = 0; k < 4; ++k) {
    asked.push_back({200.0 * k, 100 + 200.0 * (4 - k), 1, 2});
    asked.push_back({200.0 * k, 5000, 1, 2});
  }
  return jobs_asking(asked);
}

}  // namespace

TEST_CASE("Multi Node Consolidation: several nodes are replaced by a cheaper one") {
  // Nodes of 4 CPUs are made for the pairs, one after the other; one of 8 costs less than two.
  KarpenterMarket market = evictable({cpu_type("xlarge", 4, 0.20), cpu_type("2xlarge", 8, 0.30)});
  // From 901 on four pods of 2 CPUs are on four nodes of 4. Two of them fit two of those.
  market.spec.node_pools[0].consolidate_after = Seconds{300};
  const KarpenterRun r = karpenter_run(leaves_four_halves(), market);
  const ConsolidationCount& several = of(r, ConsolidationKind::several);
  CHECK(several.commands >= 1);
  CHECK(several.nodes >= 2);
  std::int64_t evictions = 0;
  for (const JobTimes& job : r.run.jobs) {
    evictions += job.preemptions;
    CHECK(job.end);
  }
  CHECK(evictions >= 2);
  // Protected pods stay where they are.
  market.spec.do_not_disrupt = true;
  const KarpenterRun kept = karpenter_run(leaves_four_halves(), market);
  CHECK(of(kept, ConsolidationKind::several).commands == 0);
  CHECK(of(kept, ConsolidationKind::single).commands == 0);
  CHECK(kept.run.preemptions == 0);
  // WhenEmpty leaves nodes with pods alone, and so does a budget of none.
  market.spec.do_not_disrupt = false;
  market.spec.node_pools[0].consolidation_policy = ConsolidationPolicy::WhenEmpty;
  CHECK(karpenter_run(leaves_four_halves(), market).run.preemptions == 0);
  market.spec.node_pools[0].consolidation_policy = ConsolidationPolicy::WhenEmptyOrUnderutilized;
  market.spec.node_pools[0].budgets = {{.nodes = 0, .reasons = {DisruptionReason::Underutilized}}};
  CHECK(karpenter_run(leaves_four_halves(), market).run.preemptions == 0);
}

TEST_CASE("a replacement is made first, and the evicted job goes on from its checkpoint") {
  // 16 CPUs for the batch. At 601 the long pod of 2 is alone, and a node of 2 costs an eighth.
  KarpenterMarket market = evictable(four_sizes());
  const auto jobs = jobs_asking({{0, 500, 1, 14}, {0, 2000, 1, 2}});
  const KarpenterRun lost = karpenter_run(jobs, market);
  CHECK(type_of(lost, market, 0) == "4xlarge");
  CHECK(type_of(lost, market, 1) == "large");
  const ConsolidationCount& single = of(lost, ConsolidationKind::single);
  CHECK(single.commands == 1);
  CHECK(single.replacements == 1);
  // 601 is the end of the first; the look of 610 is done at 625, the replacement ready at 725.
  CHECK(gone(lost, 0) == 725);
  CHECK(at(lost.run.jobs[1].end) == 725 + 2000);
  CHECK(lost.run.jobs[1].preemptions == 1);
  KubernetesSpec saves;
  saves.checkpoint = Seconds{100};
  // 624 s are done: 600 of them are kept.
  CHECK(at(karpenter_run(jobs, market, saves).run.jobs[1].end) == 725 + 1400);
}

TEST_CASE("what no longer holds after 15 s is not done") {
  KarpenterMarket market = evictable(four_sizes());
  // At 620, between the look of 610 and its validation, a pod takes the room.
  const auto jobs = jobs_asking({{0, 500, 1, 14}, {0, 2000, 1, 2}, {620, 3000, 1, 14}});
  const KarpenterRun r = karpenter_run(jobs, market);
  CHECK(r.run.jobs[1].preemptions == 0);
  CHECK(at(r.run.jobs[2].end) == 3620);
  CHECK(r.nodes.size() == 1);
}

namespace {

/// Spot nodes that all live exactly so long: Weibull's law with a shape that leaves no spread.
KarpenterMarket spot_market(double life) {
  KarpenterMarket market = market_of({cpu_type("large", 2, 0.1, CapacityType::spot)});
  market.reclaim = WeibullReclaim{1e6, Seconds{life}};
  market.notice = Seconds{120};
  return market;
}

}  // namespace

TEST_CASE("Interruption: the provider takes a spot node back, and its pods come back then") {
  // Ready at 101, taken at 1101 with 1000 s done; the next node is asked for at 1102, ready at
  // 1202. Without a checkpoint a job longer than a node's life never ends, so this one has 1500 s
  // in whole multiples of 400.
  const KarpenterMarket market = spot_market(1000);
  const auto jobs = jobs_asking({{0, 1500}});
  KubernetesSpec saves;
  saves.checkpoint = Seconds{400};
  const KarpenterRun r = karpenter_run(jobs, market, saves);
  CHECK(r.reclaims == 1);
  CHECK(gone(r, 0) == Approx(1101).margin(0.1));
  CHECK(r.run.jobs[0].preemptions == 1);
  CHECK(at(r.run.jobs[0].end) == Approx(1202 + 700).margin(0.2));
  REQUIRE(r.spans.size() == 2);
  CHECK(at(r.spans[0].begin) == 101);
  CHECK(at(r.spans[1].begin) == Approx(1202).margin(0.2));
  // On demand nobody is taken.
  KarpenterMarket stays = spot_market(1000);
  stays.offerings[0].capacity = CapacityType::on_demand;
  CHECK(karpenter_run(jobs, stays, saves).reclaims == 0);
}

TEST_CASE("with an interruption queue Karpenter drains a spot node at the notice") {
  KarpenterMarket market = spot_market(1000);
  market.spec.interruption_queue = true;
  market.spec.do_not_disrupt = false;
  KubernetesSpec saves;
  saves.checkpoint = Seconds{0};
  const auto jobs = jobs_asking({{0, 1500}});
  // At 981, with 880 s done, and the next is ready at 1082.
  const KarpenterRun evicted = karpenter_run(jobs, market, saves);
  CHECK(evicted.reclaims == 1);
  CHECK(gone(evicted, 0) == Approx(981).margin(0.1));
  CHECK(at(evicted.run.jobs[0].end) == Approx(1082 + 620).margin(0.2));
  // A protected pod stays to the end, and a later pod gets a node of its own, though there is room.
  market.spec.do_not_disrupt = true;
  market.offerings[0] = cpu_type("xlarge", 4, 0.2, CapacityType::spot);
  const KarpenterRun kept = karpenter_run(jobs_asking({{0, 1500}, {1000, 50}}), market, saves);
  CHECK(gone(kept, 0) == Approx(1101).margin(0.1));
  CHECK(at(kept.run.jobs[1].start) == 1101);  // asked for at 1001
}

TEST_CASE("pods of a node that expired before it was ready are packed anew") {
  // Half of the nodes take longer than 100 s, and expire then.
  KarpenterMarket market = market_of({cpu_type("large", 2, 0.1)});
  Fact<Seconds> delay{Seconds{100}};
  delay.low = Seconds{20}, delay.high = Seconds{500};
  market.delays.assign(1, delay);
  market.spec.node_pools[0].expire_after = Seconds{100};
  std::size_t nodes = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const KarpenterRun r = karpenter_run(jobs_asking({{0, 30}}), market, {}, seed);
    CHECK(r.starved == 0);
    CHECK(r.run.jobs[0].end);
    nodes += r.nodes.size();
  }
  CHECK(nodes > 30);  // 20 jobs, of whose nodes about half never came
}
