#include "sim/queue/backfill/kubernetes_rules.h"

#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/queue/backfill/backfill.h"

using namespace reckon;

namespace {

struct PodJob {
  double submit = 0, duration = 0;
  int gpus = 1, priority = 0;
};

JobList pod_jobs(const std::vector<PodJob>& asked) {
  JobList list;
  for (const PodJob& a : asked) {
    list.jobs.push_back(recorded_job(SimTime{} + to_clock(Seconds{a.submit}),
                                     to_clock(Seconds{a.duration}), a.gpus));
    list.jobs.back().owner.priority = a.priority;
  }
  return list;
}

QueueRun pods_run(const JobList& list, std::vector<NodeGroup> groups,
                  const KubernetesSpec& spec = {}, std::vector<Holding>* holdings = nullptr) {
  KubernetesRules rules(list, spec);
  RunOptions options;
  options.holdings = holdings;
  return run_backfill(list.jobs, groups, rules, 0, list.jobs.size(), options);
}
double pod_start(const QueueRun& run, std::size_t k) {
  return double((run.jobs[k].start.value() - SimTime{}) / std::chrono::seconds(1));
}
double pod_end(const QueueRun& run, std::size_t k) {
  return double((run.jobs[k].end.value() - SimTime{}) / std::chrono::seconds(1));
}

KubernetesSpec never_preempts() {
  KubernetesSpec spec;
  spec.preemption = PreemptionPolicy::never;
  return spec;
}

}  // namespace

TEST_CASE("kube-scheduler goes by priority, then by age, and keeps nothing free") {
  // The job of eight GPUs waits until nobody smaller comes.
  const QueueRun r = pods_run(
      pod_jobs({{0, 100, 4, 0}, {1, 10, 8, 0}, {2, 200, 4, 0}, {3, 10, 4, 0}, {4, 10, 4, 5}}),
      {{1, 8, 0}}, never_preempts());
  CHECK(pod_start(r, 2) == 2);
  CHECK(pod_start(r, 4) == 100);  // the priority before the age
  CHECK(pod_start(r, 3) == 110);
  CHECK(pod_start(r, 1) == 202);
}

TEST_CASE("a pod of higher priority evicts the lowest, of equals who started last") {
  const std::vector<PodJob> asked{{0, 100, 4, 1}, {1, 100, 2, 0}, {2, 100, 2, 0}, {10, 20, 2, 5}};
  SECTION("its work is lost") {
    const QueueRun r = pods_run(pod_jobs(asked), {{1, 8, 0}});
    CHECK(pod_start(r, 3) == 10);
    CHECK(r.jobs[0].preemptions == 0);
    CHECK(r.jobs[1].preemptions == 0);
    CHECK(r.jobs[2].preemptions == 1);
    CHECK(pod_end(r, 2) == 30 + 100);
  }
  SECTION("or kept by checkpoints") {
    KubernetesSpec spec;
    spec.checkpoint = Seconds{0};
    const QueueRun r = pods_run(pod_jobs(asked), {{1, 8, 0}}, spec);
    CHECK(pod_end(r, 2) == 30 + 92);
  }
  SECTION("with Never nobody goes") {
    const QueueRun r = pods_run(pod_jobs(asked), {{1, 8, 0}}, never_preempts());
    CHECK(pod_start(r, 3) == 100);
    CHECK(r.preemptions == 0);
  }
  SECTION("equal priorities evict nobody") {
    const QueueRun r = pods_run(pod_jobs({{0, 100, 8, 5}, {10, 20, 2, 5}}), {{1, 8, 0}});
    CHECK(pod_start(r, 1) == 100);
  }
}

TEST_CASE("LeastAllocated takes the emptiest node, MostAllocated the fullest") {
  const JobList list = pod_jobs({{0, 100, 2, 0}, {1, 100, 2, 0}});
  for (const auto scoring : {ScoringStrategy::least_allocated, ScoringStrategy::most_allocated}) {
    KubernetesSpec spec;
    spec.scoring = scoring;
    std::vector<Holding> holdings;
    pods_run(list, {{2, 8, 0}}, spec, &holdings);
    REQUIRE(holdings.size() == 2);
    const bool apart = holdings[0].part.node != holdings[1].part.node;
    CHECK(apart == (scoring == ScoringStrategy::least_allocated));
  }
}

TEST_CASE("under preemption no node has more in use than it has, and all work is done") {
  for (std::uint32_t which = 0; which < 200; ++which) {
    RandomStream dice(20261127, which, Purpose{"kubernetes preemption"}, 0);
    std::vector<PodJob> asked;
    for (int k = 0; k < 40; ++k)
      asked.push_back({double(int(dice.uniform() * 200)), 1 + double(int(dice.uniform() * 60)),
                       1 + int(dice.uniform() * 16), int(dice.uniform() * 4)});
    const JobList list = pod_jobs(asked);
    KubernetesSpec spec;
    if (which % 2 == 0) spec.checkpoint = Seconds{5};
    std::vector<Holding> holdings;
    const QueueRun run = pods_run(list, {{3, 8, 0}}, spec, &holdings);
    double held = 0;
    std::vector<std::map<SimTime, int>> change(3);
    for (const Holding& h : holdings) {
      held += to_seconds(h.end - h.begin).count() * h.part.gpus;
      change[std::size_t(h.part.node)][h.begin] += h.part.gpus;
      change[std::size_t(h.part.node)][h.end] -= h.part.gpus;
    }
    for (const auto& node : change) {
      int in_use = 0;
      for (const auto& [at, gpus] : node) CHECK((in_use += gpus) <= 8);
    }
    double useful = 0;
    for (std::size_t j = 0; j < list.jobs.size(); ++j) {
      REQUIRE(run.jobs[j].end);
      useful += asked[j].duration * asked[j].gpus;
      // Of the highest priority nobody goes.
      if (asked[j].priority == 3) CHECK(run.jobs[j].preemptions == 0);
    }
    CHECK(run.gpu_seconds == Approx(held));
    CHECK(held >= useful - 1e-6);
  }
}
