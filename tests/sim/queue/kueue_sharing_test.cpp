#include <catch2/catch.hpp>

#include "sim/queue/kueue/kueue.h"
#include "sim/queue/kueue/preemption.h"

// borrowWithinCohort and fair sharing between nested cohorts
// (https://kueue.sigs.k8s.io/docs/concepts/preemption, /cohort).
using namespace reckon;

namespace {

const std::vector<std::string> kOneFlavor{"f"};

ClusterQueueSpec queue_in(const std::string& name, const std::string& cohort, int nominal) {
  ClusterQueueSpec spec;
  spec.name = name;
  spec.cohort = cohort;
  spec.flavors = {{"f", nominal, {}, {}}};
  spec.preemption.reclaim_within_cohort = ReclaimPolicy::any;
  return spec;
}

/// a and b in `left`, c in `right`, all of the 12 GPUs those of `all` above them.
KueueSpec nested() {
  KueueSpec kueue;
  kueue.fair_sharing = {ShareStrategy::final_share};
  kueue.cluster_queues = {queue_in("a", "left", 0), queue_in("b", "left", 0),
                          queue_in("c", "right", 0)};
  kueue.cohorts = {{"all", "", {{"f", 12, {}, {}}}}, {"left", "all", {}}, {"right", "all", {}}};
  return kueue;
}

void submit(JobList& list, double at, const char* queue, int jobs) {
  for (int k = 0; k < jobs; ++k) {
    list.jobs.push_back(
        recorded_job(SimTime{} + to_clock(Seconds{at}), std::chrono::seconds(100), 1));
    list.jobs.back().owner.queue = list.names.queues.number(queue);
  }
}

/// Jobs of the queue that run at that time.
int running(const JobList& list, const std::vector<Holding>& holdings, const char* queue, int at) {
  int count = 0;
  const SimTime then = SimTime{} + std::chrono::seconds(at);
  for (const Holding& h : holdings)
    count += list.names.queues.name(list.jobs[h.job].owner.queue) == queue && h.begin <= then &&
             then < h.end;
  return count;
}

std::vector<Holding> shared_run(const JobList& list, const KueueSpec& kueue) {
  std::vector<Holding> holdings;
  RunOptions options;
  options.holdings = &holdings;
  const std::vector<NodeGroup> groups{{12, 1, 0}};
  run_kueue(list, groups, kOneFlavor, kueue, 0, list.jobs.size(), options);
  return holdings;
}

}  // namespace

TEST_CASE("nested cohorts share alike, and the queues of each share what it has") {
  JobList list;
  for (const char* queue : {"a", "b", "c"}) submit(list, 0, queue, 12);
  KueueSpec kueue = nested();
  SECTION("6 and 6, and of the left ones 3 and 3") {
    const auto holdings = shared_run(list, kueue);
    CHECK(running(list, holdings, "a", 1) == 3);
    CHECK(running(list, holdings, "b", 1) == 3);
    CHECK(running(list, holdings, "c", 1) == 6);
  }
  SECTION("flat, all have the same") {
    for (ClusterQueueSpec& queue : kueue.cluster_queues) queue.cohort = "all";
    const auto holdings = shared_run(list, kueue);
    for (const char* queue : {"a", "b", "c"}) CHECK(running(list, holdings, queue, 1) == 4);
  }
  SECTION("by the weights of cohorts and of queues") {
    kueue.cohorts[1].fair_sharing.weight = 2;         // left: 8, right: 4
    kueue.cluster_queues[0].fair_sharing.weight = 3;  // a: 6, b: 2
    const auto holdings = shared_run(list, kueue);
    CHECK(running(list, holdings, "a", 1) == 6);
    CHECK(running(list, holdings, "b", 1) == 2);
    CHECK(running(list, holdings, "c", 1) == 4);
  }
}

TEST_CASE("nested cohorts evict from the one with the highest share until both have the same") {
  // a has all 12; at 10 c takes 6 of them; at 20 b takes 3 of a's, and none of c's.
  JobList list;
  submit(list, 0, "a", 12);
  submit(list, 10, "c", 12);
  submit(list, 20, "b", 12);
  const auto holdings = shared_run(list, nested());
  CHECK(running(list, holdings, "a", 9) == 12);
  CHECK(running(list, holdings, "a", 15) == 6);
  CHECK(running(list, holdings, "c", 15) == 6);
  CHECK(running(list, holdings, "a", 25) == 3);
  CHECK(running(list, holdings, "b", 25) == 3);
  CHECK(running(list, holdings, "c", 25) == 6);
}

TEST_CASE("the share of a cohort is what it uses beyond its own over what is lent above it") {
  KueueSpec kueue = nested();
  kueue.cohorts[1].flavors = {{"f", 4, {}, {}}};  // left has 4 of its own, all 16
  KueueQuotas quotas(kueue, kOneFlavor);
  quotas.use(0, 0, 3);
  const std::size_t left = quotas.above(0), right = quotas.above(2);
  CHECK(quotas.share(left) == 0);
  CHECK(quotas.share(0) == Approx(3.0 / 16));  // a has none of its own
  quotas.use(1, 0, 5);
  CHECK(quotas.share(left) == Approx(4.0 / 16));
  CHECK(quotas.share_with(right, 2, 0, 2) == Approx(2.0 / 16));
  CHECK(quotas.share(right) == 0);
  CHECK(quotas.compared(0, 1) == std::pair<std::size_t, std::size_t>{0, 1});
  CHECK(quotas.compared(0, 2) == std::pair<std::size_t, std::size_t>{left, right});
}

TEST_CASE(
    "borrowWithinCohort evicts lower priorities for a job that borrows, up to the threshold") {
  // 12 GPUs of three queues with 4 each, all used by `other`: three jobs of 2 at priority 0, three
  // at 50. `mine` wants 6 at priority 10, 2 more than its own.
  KueueSpec kueue;
  kueue.cluster_queues = {queue_in("mine", "all", 4), queue_in("other", "all", 4),
                          queue_in("idle", "all", 4)};
  KueueQuotas quotas(kueue, kOneFlavor);
  std::vector<KueueWorkload> admitted;
  for (std::size_t k = 0; k < 6; ++k) {
    admitted.push_back({k, 1, 2, k < 3 ? 0 : 50, {}, SimTime{} + std::chrono::seconds(k), 0});
    quotas.use(1, 0, 2);
  }
  const KueueWorkload wants{99, 0, 6, 10, {}, {}, KueueQuotas::kNoFlavor};
  KueuePreemptionSpec rules;
  rules.reclaim_within_cohort = ReclaimPolicy::any;
  using Jobs = std::vector<std::size_t>;
  const auto targets = [&](const KueueWorkload& w) {
    Jobs jobs = preemption_targets(w, 0, admitted, rules, {}, quotas);
    std::sort(jobs.begin(), jobs.end());
    return jobs;
  };
  CHECK(targets(wants).empty());  // Never: 6 do not fit without borrowing
  rules.borrow_within_cohort.policy = BorrowWithinPolicy::lower_priority;
  CHECK(targets(wants) == Jobs{0, 1, 2});
  rules.borrow_within_cohort.max_priority_threshold = 0;
  CHECK(targets(wants) == Jobs{0, 1, 2});
  rules.borrow_within_cohort.max_priority_threshold = -1;
  CHECK(targets(wants).empty());  // 0 is above it: such go for a job that does not borrow only
  const KueueWorkload small{99, 0, 4, 10, {}, {}, KueueQuotas::kNoFlavor};
  CHECK(targets(small) == Jobs{1, 2});  // reclaimed, the last admitted first
  // With its own quota in use, and the threshold as before, nobody of the others goes.
  quotas.use(0, 0, 4);
  quotas.use(1, 0, -4);
  admitted.erase(admitted.begin() + 4, admitted.end());
  CHECK(targets(small).empty());
  rules.borrow_within_cohort.max_priority_threshold = 20;
  CHECK(targets(small) == Jobs{1, 2});
}

TEST_CASE("a job that borrows starts by borrowWithinCohort at the time that it is submitted") {
  KueueSpec kueue;
  kueue.cluster_queues = {queue_in("mine", "all", 4), queue_in("other", "all", 4),
                          queue_in("idle", "all", 4)};
  JobList list;
  submit(list, 0, "other", 12);
  list.jobs.push_back(
      recorded_job(SimTime{} + std::chrono::seconds(10), std::chrono::seconds(5), 6));
  list.jobs.back().owner.queue = list.names.queues.number("mine");
  list.jobs.back().owner.priority = 10;
  const std::vector<NodeGroup> groups{{2, 6, 0}};
  const auto start = [&] {
    const QueueRun run = run_kueue(list, groups, kOneFlavor, kueue, 0, list.jobs.size());
    return (run.jobs[12].start.value() - SimTime{}) / std::chrono::seconds(1);
  };
  CHECK(start() == 100);
  kueue.cluster_queues[0].preemption.borrow_within_cohort.policy =
      BorrowWithinPolicy::lower_priority;
  CHECK(start() == 10);
}
