#include "sim/queue/karpenter/karpenter_run.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "runs.h"
#include "sim/base/random.h"
#include "sim/queue/karpenter/node_rows.h"

using namespace reckon;
using namespace reckon::test;

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

TEST_CASE("a job that no node outlives never runs, unless a checkpoint keeps a part of it") {
  KarpenterMarket market = market_of({cpu_type("xlarge", 4, 0.2)});
  market.spec.node_pools[0].expire_after = Seconds{500};  // a node takes 100 s to come
  const auto jobs = jobs_asking({{0, 401, 1, 4}, {0, 399, 1, 4}});
  CHECK(karpenter_run(jobs, market).run.never.empty());  // they may not be evicted
  market.spec.do_not_disrupt = false;
  const KarpenterRun r = karpenter_run(jobs, market);
  CHECK(r.run.never == std::vector<std::size_t>{0});
  CHECK(at(r.run.jobs[1].end) == 500);
  CHECK(r.starved == 0);
  KubernetesSpec saves;
  saves.checkpoint = Seconds{400};
  const KarpenterRun kept = karpenter_run(jobs, market, saves);
  CHECK(kept.run.never.empty());
  CHECK(kept.run.jobs[0].end.has_value());
  saves.checkpoint = Seconds{401};
  CHECK(karpenter_run(jobs, market, saves).run.never == std::vector<std::size_t>{0});
  // A period of grace ends those that may not be evicted too.
  market.spec.do_not_disrupt = true;
  market.spec.node_pools[0].termination_grace_period = Seconds{0.5};
  CHECK(karpenter_run(jobs, market).run.never == std::vector<std::size_t>{0});
  market.spec.node_pools[0].termination_grace_period = Seconds{1.5};
  CHECK(karpenter_run(jobs, market).run.never.empty());
}

TEST_CASE("a job that is always evicted before it can save anything is given up") {
  // Spot nodes live for 60 s on average: e^-50 of the tries last 3,000 s.
  KarpenterMarket market = market_of({cpu_type("xlarge", 4, 0.2, CapacityType::spot)});
  market.reclaim = ExponentialReclaim{Seconds{60}};
  const auto jobs = jobs_asking({{0, 3000, 2, 4}, {0, 10, 1, 4}});
  const KarpenterRun r = karpenter_run(jobs, market);
  CHECK(r.hopeless == 1);
  CHECK(r.starved == 1);
  CHECK(r.run.jobs[0].preemptions == kMostInVain);
  CHECK_FALSE(r.run.jobs[0].end);
  CHECK(r.run.jobs[1].end.has_value());
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
