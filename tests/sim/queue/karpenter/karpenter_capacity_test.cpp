#include <catch2/catch.hpp>
#include <cmath>

#include "pools.h"
#include "sim/cluster/disruptions.h"
#include "sim/queue/karpenter/karpenter_run.h"

// Nodes that the provider has none of, drift, and pods that may not be evicted. A batch ends 1 s
// behind its last pod, and a node is ready 100 s behind its request.
using namespace reckon;
using namespace reckon::test;

namespace {

constexpr std::uint64_t kFirstSeed = 1;

JobRequest pods_of_job(double submit, double seconds, int cpus,
                       std::optional<bool> do_not_disrupt = {}) {
  JobRequest job =
      recorded_job(SimTime{} + to_clock(Seconds{submit}), to_clock(Seconds{seconds}), 0);
  job.workers = 1;
  job.worker.cpu_milli = cpus * 1000;
  job.worker.memory_mib = cpus * 1024;
  job.owner.do_not_disrupt = do_not_disrupt;
  return job;
}

KarpenterMarket capacity_market(std::vector<LaunchOffering> offerings) {
  KarpenterMarket market;
  market.spec.node_pools = {plain_pool()};
  market.spec.node_pools[0].consolidate_after.reset();
  market.delays.assign(offerings.size(), Fact<Seconds>{Seconds{100}});
  market.offerings = std::move(offerings);
  return market;
}

ShortageRules shortages_of(double every, double lasts) {
  return {true, Fact<Seconds>{Seconds{every}}, Fact<Seconds>{Seconds{lasts}}};
}

KarpenterRun run_on(const KarpenterMarket& market, const std::vector<JobRequest>& jobs,
                    const KubernetesSpec& kubernetes = {}, std::uint64_t seed = kFirstSeed) {
  RunOptions options;
  options.seed = seed;
  return run_karpenter(jobs, market, kubernetes, 0, jobs.size(), options);
}

double seconds_at(std::optional<SimTime> time) {
  return std::round(to_seconds(time.value() - SimTime{}).count() * 1e3) / 1e3;
}

std::vector<std::string> types_made(const KarpenterRun& r, const KarpenterMarket& market) {
  std::vector<std::string> types;
  for (const LaunchedNode& node : r.nodes) types.push_back(market.offerings[node.offering].type);
  return types;
}

/// The end of the shortage of the type's spot market in which the time falls; the time: none is.
double over_at(const ShortageRules& rules, std::uint64_t seed, const std::string& type,
               double time) {
  Shortages shortages(rules, seed, 0, node_entity(type, 0));
  return seconds_at(shortages.over_at(SimTime{} + to_clock(Seconds{time})));
}

}  // namespace

TEST_CASE(
    "spot that cannot be had is refused at once, and on-demand is taken, asked in 3 minutes") {
  // "Karpenter caches that result across all attempts to provision EC2 capacity for that instance
  // type and zone" for 3 minutes.
  KarpenterMarket market =
      capacity_market({cpu_type("spot", 2, 0.1, CapacityType::spot), cpu_type("demand", 2, 0.3)});
  market.shortage = shortages_of(1, 1e9);  // always
  const KarpenterRun r = run_on(
      market, {pods_of_job(0, 1000, 2), pods_of_job(100, 1000, 2), pods_of_job(200, 1000, 2)});
  CHECK(types_made(r, market) == std::vector<std::string>(3, "demand"));
  CHECK(seconds_at(r.run.jobs[0].start) == 101);
  CHECK(r.refused == 2);  // at 1 s and at 201 s, not at 101 s
  market.shortage.on = false;
  CHECK(types_made(run_on(market, {pods_of_job(0, 1000, 2)}), market) ==
        std::vector<std::string>{"spot"});
}

TEST_CASE("another spot type is tried before on-demand, at any price") {
  KarpenterMarket market =
      capacity_market({cpu_type("a", 2, 0.1, CapacityType::spot),
                       cpu_type("b", 2, 0.2, CapacityType::spot), cpu_type("demand", 2, 0.15)});
  market.shortage = shortages_of(3600, 3600);
  std::uint64_t seed = kFirstSeed;
  while (over_at(market.shortage, seed, "a", 1) == 1 || over_at(market.shortage, seed, "b", 1) > 1)
    ++seed;
  const KarpenterRun r = run_on(market, {pods_of_job(0, 1000, 2)}, {}, seed);
  CHECK(types_made(r, market) == std::vector<std::string>{"b"});
  CHECK(r.refused == 1);
}

TEST_CASE("pods wait where nothing else is allowed, and each 3 minutes are asked for again") {
  KarpenterMarket market = capacity_market({cpu_type("a", 2, 0.1, CapacityType::spot)});
  market.shortage = shortages_of(3600, 3600);
  std::uint64_t seed = kFirstSeed;
  while (over_at(market.shortage, seed, "a", 1) < 500) ++seed;
  const double over = over_at(market.shortage, seed, "a", 1);
  const double asked = 1 + 180 * std::ceil((over - 1) / 180);
  REQUIRE(over_at(market.shortage, seed, "a", asked) == asked);  // no other shortage by then
  const KarpenterRun r = run_on(market, {pods_of_job(0, 1000, 2)}, {}, seed);
  CHECK(seconds_at(r.nodes.at(0).requested) == asked);
  CHECK(seconds_at(r.run.jobs[0].start) == asked + 100);
  CHECK(double(r.refused) == (asked - 1) / 180);
}

TEST_CASE("a NodePool without capacity leaves its pods to the next") {
  KarpenterMarket market = capacity_market({cpu_type("a", 2, 0.1, CapacityType::spot, 0),
                                            cpu_type("b", 2, 0.3, CapacityType::on_demand, 1)});
  market.spec.node_pools = {plain_pool("spot", 10), plain_pool("demand", 0)};
  market.shortage = shortages_of(1, 1e9);
  const KarpenterRun r = run_on(market, {pods_of_job(0, 1000, 2)});
  CHECK(types_made(r, market) == std::vector<std::string>{"b"});
  CHECK(seconds_at(r.run.jobs[0].start) == 111);  // packed again 10 s later
}

TEST_CASE("Drift: a node goes when what its pods need is ready, and those made later stay") {
  KarpenterMarket market = capacity_market({cpu_type("a", 2, 0.1)});
  market.spec.do_not_disrupt = false;
  market.drift = {Seconds{500}};
  KubernetesSpec kubernetes;
  kubernetes.checkpoint = Seconds{100};
  const KarpenterRun r =
      run_on(market, {pods_of_job(0, 1000, 2), pods_of_job(550, 1000, 2)}, kubernetes);
  REQUIRE(r.nodes.size() == 3);
  CHECK(seconds_at(r.nodes[1].requested) == 500);  // at once, without the 15 s of consolidation
  CHECK(seconds_at(r.nodes[0].gone) == 600);
  // 499 s were done, of which 4 checkpoints keep 400.
  CHECK(r.run.jobs[0].preemptions == 1);
  CHECK(seconds_at(r.run.jobs[0].end) == 1200);
  CHECK(r.run.jobs[1].preemptions == 0);
  const ConsolidationCount& count = r.consolidations[std::size_t(ConsolidationKind::drift)];
  CHECK(count.nodes == 1);
  CHECK(count.replacements == 1);
}

TEST_CASE("budgets of reason Drifted bind drift, and others do not") {
  KarpenterMarket market = capacity_market({cpu_type("a", 2, 0.1)});
  market.spec.do_not_disrupt = false;
  market.drift = {Seconds{500}};
  const auto drifted = [&](DisruptionReason reason) {
    market.spec.node_pools[0].budgets = {{.nodes = 0, .reasons = {reason}}};
    const KarpenterRun r = run_on(market, {pods_of_job(0, 1000, 2)});
    return r.consolidations[std::size_t(ConsolidationKind::drift)].nodes;
  };
  CHECK(drifted(DisruptionReason::Drifted) == 0);
  CHECK(drifted(DisruptionReason::Underutilized) == 1);
}

TEST_CASE("do-not-disrupt keeps a drifted node, unless a terminationGracePeriod ends its drain") {
  KarpenterMarket market = capacity_market({cpu_type("a", 2, 0.1)});
  market.drift = {Seconds{500}};
  const std::vector<JobRequest> jobs{pods_of_job(0, 1000, 2)};
  const KarpenterRun kept = run_on(market, jobs);
  CHECK(kept.nodes.size() == 1);
  CHECK(seconds_at(kept.run.jobs[0].end) == 1101);
  market.spec.node_pools[0].termination_grace_period = Seconds{200};
  const KarpenterRun r = run_on(market, jobs);
  REQUIRE(r.nodes.size() == 2);
  // It drains from 600 on, when the replacement is ready.
  CHECK(seconds_at(r.nodes[0].gone) == 800);
  CHECK(seconds_at(r.run.jobs[0].end) == 1800);
}

TEST_CASE("a drifted node whose replacement has no capacity stays, and goes when there is some") {
  KarpenterMarket market = capacity_market({cpu_type("a", 2, 0.1, CapacityType::spot)});
  market.spec.do_not_disrupt = false;
  market.shortage = shortages_of(3600, 3600);
  market.drift = {Seconds{500}};
  std::uint64_t seed = kFirstSeed;
  while (over_at(market.shortage, seed, "a", 1) > 1 ||
         over_at(market.shortage, seed, "a", 500) == 500 ||
         over_at(market.shortage, seed, "a", 500) > 2000)
    ++seed;
  const KarpenterRun r = run_on(market, {pods_of_job(0, 10'000, 2)}, {}, seed);
  REQUIRE(r.nodes.size() == 2);
  CHECK(r.refused > 0);
  CHECK(seconds_at(r.nodes[1].requested) >= over_at(market.shortage, seed, "a", 500));
  CHECK(seconds_at(r.nodes[1].requested) < over_at(market.shortage, seed, "a", 500) + 190);
  CHECK(seconds_at(r.nodes[0].gone) == seconds_at(r.nodes[1].requested) + 100);
}

TEST_CASE("the annotation of a job's pods comes before that of all") {
  // One node for both, which expires at 401: who may be evicted moves, who may not stays to its
  // end.
  KarpenterMarket market = capacity_market({cpu_type("a", 4, 0.1)});
  market.spec.node_pools[0].expire_after = Seconds{400};
  KubernetesSpec kubernetes;
  kubernetes.checkpoint = Seconds{100};
  for (const bool of_all : {false, true}) {
    market.spec.do_not_disrupt = of_all;
    const KarpenterRun r =
        run_on(market, {pods_of_job(0, 350, 2, true), pods_of_job(0, 350, 2, false)}, kubernetes);
    REQUIRE(r.nodes.size() == 2);
    CHECK(r.run.jobs[0].preemptions == 0);
    CHECK(seconds_at(r.run.jobs[0].end) == 451);
    CHECK(seconds_at(r.nodes[0].gone) == 451);
    CHECK(r.run.jobs[1].preemptions == 1);
    CHECK(seconds_at(r.nodes[1].requested) == 402);
    CHECK(seconds_at(r.run.jobs[1].end) == 552);  // 300 of its 350 s were kept
  }
}
