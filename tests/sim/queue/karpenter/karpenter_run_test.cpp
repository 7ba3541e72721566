#include "sim/queue/karpenter/karpenter_run.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "pools.h"
#include "sim/base/random.h"
#include "sim/queue/karpenter/node_rows.h"

// Jobs on nodes that Karpenter makes, on a clock of round numbers: a node is ready 100 s after its
// request, a batch ends 1 s after its last pod, the disruption loop looks each 10 s, and what it
// finds is done 15 s later.
using namespace reckon;
using namespace reckon::test;

namespace {

struct PodsAsked {
  double submit = 0, seconds = 0;
  int pods = 1, cpus = 2, gpus = 0, priority = 0;
};

std::vector<JobRequest> jobs_asking(const std::vector<PodsAsked>& asked) {
  std::vector<JobRequest> jobs;
  for (const PodsAsked& a : asked) {
    JobRequest job =
        recorded_job(SimTime{} + to_clock(Seconds{a.submit}), to_clock(Seconds{a.seconds}), a.gpus);
    job.workers = a.pods;
    job.worker.cpu_milli = a.cpus * 1000;
    job.worker.memory_mib = a.cpus * 1024;
    job.owner.priority = a.priority;
    jobs.push_back(job);
  }
  return jobs;
}

KarpenterMarket market_of(std::vector<LaunchOffering> offerings) {
  KarpenterMarket market;
  market.spec.node_pools = {plain_pool()};
  market.delays.assign(offerings.size(), Fact<Seconds>{Seconds{100}});
  market.offerings = std::move(offerings);
  return market;
}

std::vector<LaunchOffering> four_sizes() {
  return {cpu_type("large", 2, 0.10), cpu_type("xlarge", 4, 0.19), cpu_type("2xlarge", 8, 0.37),
          cpu_type("4xlarge", 16, 0.80)};
}

KarpenterRun karpenter_run(const std::vector<JobRequest>& jobs, const KarpenterMarket& market,
                           const KubernetesSpec& kubernetes = {}, std::uint64_t seed = 1) {
  RunOptions options;
  options.seed = seed;
  return run_karpenter(jobs, market, kubernetes, 0, jobs.size(), options);
}

/// In seconds, to the millisecond.
double at(std::optional<SimTime> time) {
  return std::round(to_seconds(time.value() - SimTime{}).count() * 1e3) / 1e3;
}
double gone(const KarpenterRun& r, std::size_t n) { return at(r.nodes.at(n).gone); }
std::string type_of(const KarpenterRun& r, const KarpenterMarket& m, std::size_t n) {
  return m.offerings[r.nodes.at(n).offering].type;
}
const ConsolidationCount& of(const KarpenterRun& r, ConsolidationKind kind) {
  return r.consolidations[std::size_t(kind)];
}

}  // namespace

TEST_CASE("pods of several jobs of one batch share a node that is sized for them") {
  const KarpenterMarket market = market_of(four_sizes());
  const auto jobs = jobs_asking({{0, 1000}, {0.5, 1000}, {0.9, 1000, 2}});
  const KarpenterRun r = karpenter_run(jobs, market);
  REQUIRE(r.nodes.size() == 1);
  CHECK(type_of(r, market, 0) == "2xlarge");
  // The batch ends at 1.9, the node is ready at 101.9.
  for (const JobTimes& job : r.run.jobs) CHECK(at(job.start) == Approx(101.9));
  CHECK(at(r.run.jobs[2].end) == Approx(1101.9));
}

TEST_CASE("later pods use the room of nodes that are coming or there before a new node") {
  const KarpenterMarket market = market_of({cpu_type("2xlarge", 8, 0.37)});
  const auto jobs =
      jobs_asking({{0, 1000, 1, 4}, {50, 1000, 1, 2}, {500, 100, 1, 2}, {600, 100, 1, 4}});
  const KarpenterRun r = karpenter_run(jobs, market);
  CHECK(at(r.run.jobs[1].start) == 101);
  CHECK(at(r.run.jobs[2].start) == 500);
  CHECK(at(r.run.jobs[3].start) == 701);  // 2 CPUs are free then: a node of its own
  CHECK(r.nodes.size() == 2);
}

TEST_CASE("a job starts when its last pod is bound, and holds the room of the others until then") {
  const KarpenterMarket market = market_of({gpu_type("g.1", 1, 1)});
  const KarpenterRun r = karpenter_run(jobs_asking({{0, 100, 3, 4, 1}}), market);
  CHECK(r.nodes.size() == 3);
  CHECK(at(r.run.jobs[0].start) == 101);
  CHECK(r.run.gpu_seconds == 300);
  // From their requests at 1 to the end at 201: half of the nodes' time is of use.
  CHECK(r.run.utilization == Approx(300.0 / 600));
  CHECK(r.most_gpus == 3);
}

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

KarpenterMarket evictable(std::vector<LaunchOffering> offerings) {
  KarpenterMarket market = market_of(std::move(offerings));
  market.spec.do_not_disrupt = false;
  market.spec.node_pools[0].budgets = {{.share = 1.0}};
  return market;
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

TEST_CASE("limits keep nodes away: pods wait for a node to go, or for ever") {
  KarpenterMarket market = market_of({cpu_type("xlarge", 4, 0.2)});
  market.spec.node_pools[0].limits.cpu = 4;
  const KarpenterRun r = karpenter_run(jobs_asking({{0, 100, 1, 4}, {0, 100, 1, 4}}), market);
  CHECK(r.nodes.size() == 1);
  CHECK(at(r.run.jobs[1].start) == 201);
  // Of three pods of 4 CPUs one is bound, and the job never starts.
  const KarpenterRun never = karpenter_run(jobs_asking({{0, 100, 3, 4}}), market);
  CHECK(never.starved == 1);
  CHECK_FALSE(never.run.jobs[0].start);
  // No node is as large as this pod.
  const KarpenterRun large = karpenter_run(jobs_asking({{0, 100, 1, 5}}), market);
  CHECK(large.run.never == std::vector<std::size_t>{0});
  CHECK(large.starved == 0);
}

TEST_CASE("a batch that a claim's largest type kept small goes on 10 s later") {
  KarpenterMarket market = market_of({cpu_type("large", 2, 0.1), cpu_type("2xlarge", 8, 0.9)});
  market.spec.node_pools[0].limits.cpu = 9;
  // Either claim may become 8 CPUs, so the second pod waits; the first becomes 2.
  const auto jobs = jobs_asking({{0, 1000, 1, 2}, {2, 1000, 1, 2}, {2, 1000, 1, 8}});
  const KarpenterRun r = karpenter_run(jobs, market);
  CHECK(at(r.run.jobs[0].start) == 101);
  CHECK(at(r.run.jobs[1].start) <= 3 + 10 + 100);
}

TEST_CASE("pods are bound by priority, and expired nodes are drained") {
  KarpenterMarket market = market_of({cpu_type("xlarge", 4, 0.2)});
  market.spec.node_pools[0].limits.cpu = 4;
  const auto jobs = jobs_asking({{0, 100, 1, 4}, {1, 100, 1, 4}, {2, 100, 1, 4, 0, 5}});
  const KarpenterRun r = karpenter_run(jobs, market);
  // The node was asked for by the first, and has room for one when it is ready.
  CHECK(at(r.run.jobs[2].start) == 101);
  CHECK(at(r.run.jobs[0].start) == 201);
  CHECK(at(r.run.jobs[1].start) == 301);

  market.spec.node_pools[0].expire_after = Seconds{50 + 100};
  const auto one = jobs_asking({{0, 1000, 1, 4}});
  CHECK(at(karpenter_run(one, market).run.jobs[0].end) == 1101);  // protected
  market.spec.node_pools[0].termination_grace_period = Seconds{100};
  KubernetesSpec saves;
  saves.checkpoint = Seconds{0};
  // Drained at 151, ended at 251 with 150 s done; the next node is asked for at 252.
  const KarpenterRun forced = karpenter_run(one, market, saves);
  CHECK(gone(forced, 0) == 251);
  CHECK(forced.run.jobs[0].preemptions >= 1);
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

TEST_CASE("rows of pictures hold one node at a time, each of its kind") {
  KarpenterMarket market = market_of({gpu_type("g.1", 1, 1), gpu_type("g.4", 4, 3)});
  const auto jobs = jobs_asking(
      {{0, 100, 1, 4, 1}, {0, 300, 4, 4, 1}, {3000, 100, 1, 4, 1}, {6000, 100, 1, 4, 1}});
  const KarpenterRun r = karpenter_run(jobs, market);
  const NodeRows rows = rows_of(r, market);
  CHECK(rows.stays.size() == r.nodes.size());
  CHECK(rows.groups.size() < r.nodes.size());
  std::vector<std::vector<NodeStay>> by_row(rows.groups.size());
  for (std::size_t n = 0; n < r.nodes.size(); ++n) {
    const NodeStay& stay = rows.stays[n];
    const LaunchOffering& offering = market.offerings[r.nodes[n].offering];
    CHECK(rows.groups[std::size_t(stay.node)].gpus == offering.size.gpus);
    CHECK(rows.names[std::size_t(stay.node)] == offering.type);
    auto& before = by_row[std::size_t(stay.node)];
    if (!before.empty()) CHECK(before.back().end <= stay.begin);
    before.push_back(stay);
  }
  REQUIRE(rows.holdings.size() == r.holdings.size());
  for (const Holding& h : rows.holdings)
    CHECK(std::ranges::any_of(by_row[std::size_t(h.part.node)], [&](const NodeStay& stay) {
      return stay.begin <= h.begin && h.end <= stay.end;
    }));
}

TEST_CASE("in random queues nodes hold no more than they have, and all work is done") {
  for (std::uint32_t which = 0; which < 60; ++which) {
    RandomStream dice(21, which, Purpose{"karpenter queue"}, 0);
    std::vector<PodsAsked> asked;
    for (int k = 0; k < 40; ++k)
      asked.push_back({std::floor(dice.uniform() * 4000), 1 + std::floor(dice.uniform() * 2000),
                       1 + int(dice.uniform() * 3), 1 + int(dice.uniform() * 12),
                       int(dice.uniform() * 3), int(dice.uniform() * 2)});
    KarpenterMarket market = evictable({gpu_type("g.1", 1, 1), gpu_type("g.4", 4, 3.5),
                                        gpu_type("g.1", 1, 0.4, CapacityType::spot),
                                        gpu_type("g.8", 8, 7), cpu_type("c", 16, 0.7)});
    Fact<Seconds> delay{Seconds{90}};
    delay.low = Seconds{40}, delay.high = Seconds{200};
    market.delays.assign(5, delay);
    market.spec.do_not_disrupt = which % 3 == 0;
    market.spec.node_pools[0].budgets = {{.share = 0.3}};
    if (which % 2 == 0) market.spec.node_pools[0].expire_after = Seconds{1500};
    if (which % 4 == 0) market.reclaim = ExponentialReclaim{Seconds{2000}};
    market.notice = Seconds{120};
    market.spec.interruption_queue = which % 8 == 0;
    KubernetesSpec saves;
    saves.checkpoint = Seconds{10};
    const auto jobs = jobs_asking(asked);
    const KarpenterRun r = karpenter_run(jobs, market, saves, which);
    INFO(which);
    CHECK(r.starved == 0);
    std::map<int, std::map<SimTime, int>> change;  // by node
    double held = 0;
    for (const Holding& h : r.holdings) {
      change[h.part.node][h.begin] += h.part.gpus;
      change[h.part.node][h.end] -= h.part.gpus;
      const LaunchedNode& node = r.nodes[std::size_t(h.part.node)];
      CHECK(h.begin >= node.requested);
      CHECK(h.end <= node.gone);
      held += h.part.gpus * to_seconds(h.end - h.begin).count();
    }
    for (const auto& [node, steps] : change) {
      int in_use = 0;
      const int gpus = market.offerings[r.nodes[std::size_t(node)].offering].size.gpus;
      for (const auto& [when, more] : steps) CHECK((in_use += more) <= gpus);
    }
    CHECK(held == Approx(r.run.gpu_seconds));
    for (const RunSpan& span : r.spans) {  // all its pods are bound meanwhile
      int gpus = 0;
      for (const Holding& h : r.holdings)
        if (h.job == span.job && h.begin <= span.begin && h.end >= span.end) gpus += h.part.gpus;
      CHECK(gpus == jobs[span.job].gpus());
    }
    double useful = 0;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      REQUIRE(r.run.jobs[j].end);
      useful += asked[j].seconds * asked[j].gpus * asked[j].pods;
    }
    CHECK(held >= useful - 1e-6);
    CHECK(r.run.utilization <= 1);
    const KarpenterRun again = karpenter_run(jobs, market, saves, which);
    for (std::size_t j = 0; j < jobs.size(); ++j) CHECK(again.run.jobs[j].end == r.run.jobs[j].end);
  }
}
