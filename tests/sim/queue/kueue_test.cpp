#include "sim/queue/kueue/kueue.h"

#include <catch2/catch.hpp>

#include "sim/queue/kueue/preemption.h"

using namespace reckon;

namespace {

const std::vector<std::string> kPool{"default-flavor"};

ClusterQueueSpec queue(const std::string& name, int nominal, std::optional<int> borrowing = {},
                       std::optional<int> lending = {}) {
  ClusterQueueSpec spec;
  spec.name = name;
  spec.cohort = "team-ab";
  spec.flavors = {{"default-flavor", nominal, borrowing, lending}};
  return spec;
}

KueueQuotas quotas_of(std::vector<ClusterQueueSpec> queues,
                      std::vector<KueueCohortSpec> cohorts = {}) {
  KueueSpec spec;
  spec.cluster_queues = std::move(queues);
  spec.cohorts = std::move(cohorts);
  return {spec, kPool};
}

struct Asked {
  double submit = 0, duration = 0;
  int gpus = 1;
  std::string queue;
  int priority = 0;
};

JobList list_of(const std::vector<Asked>& asked) {
  JobList list;
  for (const Asked& a : asked) {
    list.jobs.push_back(recorded_job(SimTime{} + to_clock(Seconds{a.submit}),
                                     to_clock(Seconds{a.duration}), a.gpus));
    list.jobs.back().owner.queue = list.names.queues.number(a.queue);
    list.jobs.back().owner.priority = a.priority;
  }
  return list;
}

QueueRun kueue_run(const JobList& list, const KueueSpec& kueue, std::vector<NodeGroup> groups,
                   const std::vector<std::string>& pools = kPool) {
  return run_kueue(list, groups, pools, kueue, 0, list.jobs.size());
}
double kueue_start(const QueueRun& run, std::size_t k) {
  return double((run.jobs[k].start.value() - SimTime{}) / std::chrono::seconds(1));
}
double end(const QueueRun& run, std::size_t k) {
  return double((run.jobs[k].end.value() - SimTime{}) / std::chrono::seconds(1));
}

}  // namespace

TEST_CASE("quotas, borrowing and lending limits are those of Kueue's page") {
  // https://kueue.sigs.k8s.io/docs/concepts/cluster_queue, with 9 and 12 of one resource.
  SECTION("Borrowing example: 12 + 9 while the other uses nothing") {
    KueueQuotas q = quotas_of({queue("a", 9), queue("b", 12)});
    CHECK(q.available(0, 0) == 21);
    CHECK(q.available(1, 0) == 21);
    q.use(1, 0, 5);
    CHECK(q.available(0, 0) == 16);
  }
  SECTION("BorrowingLimit 1: 9 + 1, and the other up to 12 + 9") {
    const KueueQuotas q = quotas_of({queue("a", 9, 1), queue("b", 12)});
    CHECK(q.available(0, 0) == 10);
    CHECK(q.available(1, 0) == 21);
  }
  SECTION("LendingLimit 1: 9 + 1 while the other uses at most 11, which can use 9 + 12") {
    KueueQuotas q = quotas_of({queue("a", 9), queue("b", 12, {}, 1)});
    CHECK(q.available(0, 0) == 10);
    CHECK(q.available(1, 0) == 21);
    q.use(1, 0, 11);
    CHECK(q.available(0, 0) == 10);
    q.use(1, 0, 1);
    CHECK(q.available(0, 0) == 9);
  }
  SECTION("without a cohort nothing is borrowed") {
    ClusterQueueSpec alone = queue("a", 9);
    alone.cohort.clear();
    const KueueQuotas q = quotas_of({alone, queue("b", 12)});
    CHECK(q.available(0, 0) == 9);
    CHECK(q.available(1, 0) == 12);
  }
}

TEST_CASE("a cohort has quotas of its own, lends to the one above it and borrows from there") {
  // left (a and b, 4 each) and right (c, 2) below all, which has 3 of its own.
  const auto in = [](ClusterQueueSpec spec, const char* cohort) {
    spec.cohort = cohort;
    return spec;
  };
  const std::vector<ClusterQueueSpec> queues{in(queue("a", 4), "left"), in(queue("b", 4), "left"),
                                             in(queue("c", 2), "right")};
  const KueueCohortSpec all{"all", "", {{"default-flavor", 3, {}, {}}}}, right{"right", "all", {}};
  SECTION("without limits all of it is shared") {
    KueueQuotas q = quotas_of(queues, {all, {"left", "all", {}}, right});
    for (const std::size_t k : {0, 1, 2}) CHECK(q.available(k, 0) == 4 + 4 + 2 + 3);
    q.use(2, 0, 5);
    CHECK(q.available(0, 0) == 8);
    CHECK(q.same_cohort(0, 2));
  }
  SECTION("left lends 2 of its 8") {
    KueueQuotas q =
        quotas_of(queues, {all, {"left", "all", {{"default-flavor", 0, {}, 2}}}, right});
    CHECK(q.available(2, 0) == 2 + 3 + 2);
    q.use(0, 0, 6);  // of what left keeps
    CHECK(q.available(2, 0) == 2 + 3 + 2);
    CHECK(q.available(1, 0) == 2 + 2 + 3);
    q.use(1, 0, 2);
    CHECK(q.available(2, 0) == 2 + 3);
    q.use(1, 0, -2);
    q.use(0, 0, -6);
    CHECK(q.available(2, 0) == 2 + 3 + 2);
  }
  SECTION("left borrows 1 at most, whoever of it") {
    KueueQuotas q =
        quotas_of(queues, {all, {"left", "all", {{"default-flavor", 0, 1, {}}}}, right});
    CHECK(q.most(0, 0) == 8 + 1);
    q.use(1, 0, 7);
    CHECK(q.available(0, 0) == 2);
    CHECK(q.available(2, 0) == 2 + 3 + 1);
  }
  SECTION("a queue takes back what a queue of another cohort below the same one has borrowed") {
    KueueSpec kueue;
    kueue.cluster_queues = queues;
    kueue.cluster_queues[0].preemption.reclaim_within_cohort = ReclaimPolicy::any;
    kueue.cohorts = {all, {"left", "all", {}}, right};
    const QueueRun r =
        kueue_run(list_of({{0, 100, 4, "c"}, {0, 100, 4, "c"}, {0, 100, 4, "c"}, {10, 5, 4, "a"}}),
                  kueue, {{13, 1, 0}});
    CHECK(kueue_start(r, 3) == 10);
    CHECK(r.jobs[0].preemptions + r.jobs[1].preemptions + r.jobs[2].preemptions == 1);
  }
}

TEST_CASE("a queue within its quota is admitted before one that borrows") {
  // The page's second scenario: a uses all of its 9, b has pending workloads.
  const KueueSpec kueue{{}, {}, {queue("a", 9), queue("b", 12)}};
  const JobList list =
      list_of({{0, 100, 9, "a"}, {0, 50, 12, "b"}, {1, 10, 6, "a"}, {2, 10, 8, "b"}});
  const QueueRun r = kueue_run(list, kueue, {{21, 1, 0}});
  CHECK(kueue_start(r, 3) == 50);  // though it came later
  CHECK(kueue_start(r, 2) == 60);
}

TEST_CASE("StrictFIFO blocks behind the first, BestEffortFIFO passes it over") {
  for (const auto strategy : {QueueingStrategy::strict_fifo, QueueingStrategy::best_effort_fifo}) {
    ClusterQueueSpec q = queue("a", 8);
    q.strategy = strategy;
    const KueueSpec kueue{{}, {}, {q}};
    const QueueRun r =
        kueue_run(list_of({{0, 100, 6, ""}, {1, 10, 4, ""}, {2, 10, 2, ""}}), kueue, {{1, 8, 0}});
    CHECK(kueue_start(r, 1) == 100);
    CHECK(kueue_start(r, 2) == (strategy == QueueingStrategy::strict_fifo ? 100 : 2));
  }
}

TEST_CASE("priority goes before age within a queue") {
  const KueueSpec kueue{{}, {}, {queue("a", 8)}};
  const QueueRun r = kueue_run(list_of({{0, 100, 8, ""}, {1, 10, 8, "", 1}, {2, 10, 8, "", 5}}),
                               kueue, {{1, 8, 0}});
  CHECK(kueue_start(r, 2) == 100);
  CHECK(kueue_start(r, 1) == 110);
}

TEST_CASE("flavors are tried in order, and whenCanBorrow decides whether borrowing ends it") {
  ClusterQueueSpec a = queue("a", 0), b = queue("b", 0);
  a.flavors = {{"spot", 4, {}, {}}, {"demand", 8, {}, {}}};
  b.flavors = {{"spot", 4, {}, {}}};
  const std::vector<std::string> pools{"spot", "demand"};
  const std::vector<NodeGroup> groups{{8, 1, 0}, {8, 1, 1}};
  // Job 0 takes the own spot GPUs; job 1 could borrow b's, or take demand; b then wants its own.
  const JobList list = list_of({{0, 100, 4, "a"}, {1, 100, 4, "a"}, {2, 10, 4, "b"}});
  CHECK(kueue_start(kueue_run(list, {{}, {}, {a, b}}, groups, pools), 2) == 100);
  a.fungibility.when_can_borrow = WhenCan::try_next_flavor;
  CHECK(kueue_start(kueue_run(list, {{}, {}, {a, b}}, groups, pools), 2) == 2);
}

TEST_CASE("reclaimWithinCohort takes back what others borrow, by policy") {
  ClusterQueueSpec b = queue("b", 8);
  const JobList list = list_of({{0, 100, 8, "a", 5}, {1, 100, 8, "a", 5}, {10, 50, 8, "b", 1}});
  const std::vector<NodeGroup> groups{{2, 8, 0}};
  CHECK(kueue_start(kueue_run(list, {{}, {}, {queue("a", 8), b}}, groups), 2) == 100);  // Never
  b.preemption.reclaim_within_cohort = ReclaimPolicy::lower_priority;
  CHECK(kueue_start(kueue_run(list, {{}, {}, {queue("a", 8), b}}, groups), 2) ==
        100);  // theirs is higher
  b.preemption.reclaim_within_cohort = ReclaimPolicy::any;
  const QueueRun r = kueue_run(list, {{}, {}, {queue("a", 8), b}}, groups);
  CHECK(kueue_start(r, 2) == 10);
  CHECK(r.jobs[1].preemptions == 1);  // the last admitted
  CHECK(end(r, 0) == 100);
  CHECK(end(r, 1) == 60 + 100);  // it starts again
}

TEST_CASE("an evicted job goes on from its last checkpoint") {
  ClusterQueueSpec b = queue("b", 8);
  b.preemption.reclaim_within_cohort = ReclaimPolicy::any;
  const JobList list = list_of({{0, 100, 8, "a"}, {0, 100, 8, "a"}, {45, 50, 8, "b"}});
  const std::vector<NodeGroup> groups{{2, 8, 0}};
  KueueSpec kueue{{}, Seconds{20}, {queue("a", 8), b}};
  CHECK(end(kueue_run(list, kueue, groups), 1) == 95 + 60);  // 40 s are saved
  kueue.checkpoint = Seconds{0};
  const QueueRun r = kueue_run(list, kueue, groups);
  CHECK(end(r, 1) == 95 + 55);
  CHECK(r.gpu_seconds == Approx(8 * 250));  // nothing is done twice
}

TEST_CASE("withinClusterQueue evicts lower priorities, or newer ones of the same") {
  ClusterQueueSpec a = queue("a", 8);
  const JobList list =
      list_of({{0, 100, 4, "", 1}, {1, 100, 4, "", 2}, {2, 10, 4, "", 2}, {3, 10, 4, "", 3}});
  const std::vector<NodeGroup> groups{{1, 8, 0}};
  CHECK(kueue_start(kueue_run(list, {{}, {}, {a}}, groups), 2) ==
        101);  // Never: 3 goes first at 100
  a.preemption.within_cluster_queue = WithinPolicy::lower_priority;
  const QueueRun r = kueue_run(list, {{}, {}, {a}}, groups);
  CHECK(kueue_start(r, 2) == 2);  // evicts job 0
  CHECK(kueue_start(r, 3) == 3);  // evicts the last admitted of priority 2: job 2
  CHECK(r.jobs[0].preemptions == 1);
  CHECK(r.jobs[2].preemptions == 1);
  CHECK(r.jobs[1].preemptions == 0);
}

TEST_CASE("classic preemption evicts as few as it can, borrowers of lowest priority first") {
  ClusterQueueSpec mine = queue("mine", 8);
  mine.preemption = {ReclaimPolicy::any, WithinPolicy::lower_priority};
  KueueQuotas quotas = quotas_of({mine, queue("other", 4)});
  std::vector<KueueWorkload> admitted;
  const auto admit = [&](std::size_t queue, int gpus, int priority) {
    admitted.push_back({admitted.size(), queue, gpus, priority, SimTime{},
                        SimTime{} + std::chrono::seconds(admitted.size()), 0});
    quotas.use(queue, 0, gpus);
  };
  admit(1, 4, 9);  // 0
  admit(1, 2, 1);  // 1: the first in order, but not needed in the end
  admit(1, 4, 2);  // 2
  const KueueWorkload wants{99, 0, 6, 5, {}, {}, -1};
  // 10 of 12 are used: 2 and 4 make 8, and without the 2 there are still 6.
  CHECK(preemption_targets(wants, 0, admitted, mine.preemption, {}, quotas) ==
        std::vector<std::size_t>{2});
  CHECK(quotas.in_use(1, 0) == 10);  // as before
}

TEST_CASE("fair sharing preempts until shares are equal, by its strategies") {
  // 12 GPUs are lent by three queues; a borrowed 8 of them with jobs of 2.
  ClusterQueueSpec a = queue("a", 4), b = queue("b", 4), c = queue("c", 4);
  for (auto* q : {&a, &b, &c}) q->preemption.reclaim_within_cohort = ReclaimPolicy::any;
  std::vector<Asked> asked;
  for (int k = 0; k < 6; ++k) asked.push_back({0, 100, 2, "a"});
  for (int k = 0; k < 6; ++k) asked.push_back({10, 100, 2, "b"});
  const JobList list = list_of(asked);
  const std::vector<NodeGroup> groups{{12, 1, 0}};
  const auto started_at_10 = [&](std::vector<ShareStrategy> strategies) {
    const QueueRun r = kueue_run(list, {strategies, {}, {a, b, c}}, groups);
    int count = 0;
    for (std::size_t k = 6; k < 12; ++k) count += kueue_start(r, k) == 10 ? 1 : 0;
    return count;
  };
  // Classic: within its nominal 4 only. Fair: 6 each, as c has none.
  CHECK(started_at_10({}) == 2);
  CHECK(started_at_10({ShareStrategy::final_share}) == 3);
  CHECK(started_at_10({ShareStrategy::initial_share}) == 3);
  b.fair_sharing.weight = 3;  // b may borrow three times as much: 3 of the 4 GPUs of c
  CHECK(started_at_10({ShareStrategy::final_share}) == 3);
}

TEST_CASE("admitted jobs wait for nodes of their flavor, and what is too large is told") {
  const KueueSpec kueue{{}, {}, {queue("a", 16)}};
  const std::vector<NodeGroup> groups{{2, 8, 0}};
  // Quota is there for all, but two nodes with 5 each have no 6 together.
  const QueueRun r =
      kueue_run(list_of({{0, 100, 5, ""}, {0, 50, 5, ""}, {1, 10, 6, ""}}), kueue, groups);
  CHECK(kueue_start(r, 2) == 50);
  const JobList large = list_of({{0, 1, 17, ""}});
  CHECK(kueue_never(large, 0, groups, kPool, kueue) ==
        "ClusterQueue 'a' can have 16 of a flavor at most");
  const JobList unknown = list_of({{0, 1, 1, "x"}});
  CHECK(unknown_cluster_queues(unknown, kueue) == std::vector<std::string>{"x"});
}
