#include <array>
#include <catch2/catch.hpp>

#include "sim/queue/kueue/admission_checks.h"
#include "sim/queue/kueue/kueue.h"

// Kueue's admission checks: https://kueue.sigs.k8s.io/docs/concepts/admission_check and
// https://kueue.sigs.k8s.io/docs/concepts/admission, "Failure Handling".
using namespace reckon;

namespace {

const std::vector<std::string> kCheckedPools{"reserved", "spot"};

/// A queue of four GPUs of each flavor; jobs on `spot` are checked.
KueueSpec with_checks(std::vector<KueueAdmissionCheckSpec> checks,
                      std::vector<std::string> on_flavors = {}) {
  KueueSpec kueue;
  ClusterQueueSpec queue;
  queue.name = "q";
  queue.flavors = {{"reserved", 4, {}, {}}, {"spot", 4, {}, {}}};
  for (const auto& check : checks) queue.admission_checks.push_back({check.name, on_flavors});
  kueue.cluster_queues = {queue};
  kueue.admission_checks = std::move(checks);
  return kueue;
}

JobList checked_jobs(const std::vector<std::array<int, 3>>& jobs) {  // submit, seconds, GPUs
  JobList list;
  for (const auto& [submit, seconds, gpus] : jobs) {
    list.jobs.push_back(recorded_job(SimTime{} + std::chrono::seconds(submit),
                                     std::chrono::seconds(seconds), gpus));
    list.jobs.back().owner.queue = list.names.queues.number("q");
  }
  return list;
}

QueueRun checked_run(const JobList& list, const KueueSpec& kueue, std::uint32_t replication = 0) {
  RunOptions options;
  options.replication = replication;
  return run_kueue(list, std::vector<NodeGroup>{{1, 4, 0}, {1, 4, 1}}, kCheckedPools, kueue, 0,
                   list.jobs.size(), options);
}

double checked_start(const QueueRun& run, std::size_t k) {
  return double((run.jobs[k].start.value() - SimTime{}) / std::chrono::seconds(1));
}

}  // namespace

TEST_CASE("a job starts when all checks of its queue are Ready, which run at once") {
  const KueueSpec kueue = with_checks({{.name = "budget", .ready_after = Seconds{30}},
                                       {.name = "dws", .ready_after = Seconds{100}}});
  const QueueRun r = checked_run(checked_jobs({{10, 5, 2}}), kueue);
  CHECK(checked_start(r, 0) == 110);
  CHECK(r.gpu_seconds == 2 * 5);  // it has quota while it waits, and no GPUs
}

TEST_CASE("a check may be of a flavor only") {
  const KueueSpec kueue = with_checks({{.name = "dws", .ready_after = Seconds{100}}}, {"spot"});
  const QueueRun r = checked_run(checked_jobs({{0, 50, 4}, {0, 50, 4}}), kueue);
  CHECK(checked_start(r, 0) == 0);
  CHECK(checked_start(r, 1) == 100);
}

TEST_CASE("quota is reserved while a check runs, and others wait for it") {
  KueueSpec kueue = with_checks({{.name = "dws", .ready_after = Seconds{100}}});
  kueue.cluster_queues[0].flavors = {{"reserved", 4, {}, {}}};
  const QueueRun r = checked_run(checked_jobs({{0, 50, 4}, {1, 50, 1}}), kueue);
  CHECK(checked_start(r, 0) == 100);
  CHECK(checked_start(r, 1) == 250);  // its quota is free at 150, its check Ready 100 s later
}

TEST_CASE("an attempt that fails gives its quota back and is repeated after a back-off") {
  KueueSpec kueue = with_checks(
      {{.name = "dws",
        .ready_after = Seconds{100},
        .failures = 1,
        .retry = {
            .backoff_limit_count = 3, .backoff_base = Seconds{60}, .backoff_max = Seconds{200}}}});
  kueue.cluster_queues[0].flavors = {{"reserved", 4, {}, {}}};
  // Attempts fail at 100; 100 + 60 + 100; + 120 + 100; + 200 (not 240) + 100: 780. Four of them.
  AdmissionChecks checks(kueue, kCheckedPools, 1, 0);
  SimTime now{};
  std::vector<std::int64_t> failures, back_offs;
  AdmissionChecks::Verdict verdict;
  do {
    verdict = *checks.check(0, 0, 0, now);
    failures.push_back((verdict.at - SimTime{}) / std::chrono::seconds(1));
    back_offs.push_back(verdict.back_off / std::chrono::seconds(1));
    now = verdict.at + verdict.back_off;
  } while (verdict.kind == AdmissionChecks::Verdict::Kind::retry);
  CHECK(verdict.kind == AdmissionChecks::Verdict::Kind::rejected);
  CHECK(failures == std::vector<std::int64_t>{100, 260, 480, 780});
  back_offs.pop_back();
  CHECK(back_offs == std::vector<std::int64_t>{60, 120, 200});
  const QueueRun r = checked_run(checked_jobs({{0, 50, 4}}), kueue);
  CHECK_FALSE(r.jobs[0].start);
  CHECK(r.rejected == 1);
  CHECK(r.never.empty());
}

TEST_CASE("an attempt that succeeds ends the count of those that failed") {
  const KueueSpec kueue = with_checks({{.name = "dws",
                                        .ready_after = Seconds{1},
                                        .failures = 0.5,
                                        .retry = {.backoff_limit_count = 2}}});
  AdmissionChecks checks(kueue, kCheckedPools, 1, 0);
  int in_a_row = 0, rejected = 0;
  for (int k = 0; k < 400; ++k) {  // of one job, which is evicted again and again
    const auto verdict = *checks.check(0, 0, 0, SimTime{});
    in_a_row = verdict.kind == AdmissionChecks::Verdict::Kind::ready ? 0 : in_a_row + 1;
    const bool out = verdict.kind == AdmissionChecks::Verdict::Kind::rejected;
    CHECK(out == (in_a_row > 2));
    rejected += out ? 1 : 0;
  }
  CHECK(rejected > 20);
}

TEST_CASE("the quota of an attempt that failed serves others during the back-off") {
  KueueSpec kueue = with_checks({{.name = "dws",
                                  .ready_after = Seconds{100},
                                  .failures = 1,
                                  .retry = {.backoff_limit_count = 1}}},
                                {"spot"});
  kueue.cluster_queues[0].flavors = {{"spot", 4, {}, {}}, {"reserved", 4, {}, {}}};
  // On spot the check fails at 100, and at 100 + 60 + 100; another queue has no check.
  ClusterQueueSpec other;
  other.name = "other";
  other.flavors = {{"spot", 0, {}, {}}};
  other.cohort = kueue.cluster_queues[0].cohort = "all";
  kueue.cluster_queues.push_back(other);
  JobList list = checked_jobs({{0, 10, 4}, {1, 20, 4}});
  list.jobs[1].owner.queue = list.names.queues.number("other");
  const QueueRun r = checked_run(list, kueue);
  CHECK(checked_start(r, 1) == 100);
  CHECK(r.rejected == 1);
}

TEST_CASE("a job that is evicted while its check runs begins another attempt") {
  KueueSpec kueue = with_checks({{.name = "dws", .ready_after = Seconds{100}}}, {"reserved"});
  kueue.cluster_queues[0].flavors = {{"reserved", 4, {}, {}}};
  kueue.cluster_queues[0].preemption.within_cluster_queue = WithinPolicy::lower_priority;
  JobList list = checked_jobs({{0, 10, 4}, {50, 20, 4}});
  list.jobs[1].owner.priority = 1;
  const QueueRun r = checked_run(list, kueue);
  CHECK(checked_start(r, 1) == 150);
  CHECK(checked_start(r, 0) == 270);  // quota at 170
  CHECK(r.jobs[0].preemptions == 0);  // it had not started
}

TEST_CASE("how long checks take is drawn by job and replication, failures by their share") {
  const KueueSpec kueue = with_checks({{.name = "dws",
                                        .ready_after = ExponentialTime{Seconds{100}},
                                        .failures = 0.25,
                                        .retry = {.backoff_limit_count = 0}}});
  CHECK(draws_checks(kueue));
  CHECK_FALSE(draws_checks(with_checks({{.name = "dws", .ready_after = Seconds{100}}})));
  std::vector<std::array<int, 3>> jobs;
  constexpr int kJobs = 4000;
  for (int k = 0; k < kJobs; ++k) jobs.push_back({k * 10'000, 1, 1});
  const JobList list = checked_jobs(jobs);
  const QueueRun r = checked_run(list, kueue), again = checked_run(list, kueue),
                 other = checked_run(list, kueue, 1);
  CHECK(double(r.rejected) / kJobs == Approx(0.25).margin(0.03));
  double waited = 0;
  int started = 0, differ = 0;
  for (std::size_t k = 0; k < list.jobs.size(); ++k) {
    CHECK(r.jobs[k].start == again.jobs[k].start);
    differ += r.jobs[k].start != other.jobs[k].start;
    if (!r.jobs[k].start) continue;
    ++started;
    waited += to_seconds(*r.jobs[k].start - list.jobs[k].submit).count();
  }
  CHECK(waited / started == Approx(100).epsilon(0.06));
  CHECK(differ > kJobs / 2);
}
