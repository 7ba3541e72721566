#include "sim/queue/snapshot/start_forecast.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/queue/snapshot/job_lengths.h"

using namespace reckon;

namespace {

constexpr std::int64_t kNow = 1'795'000'000;
constexpr double kHour = 3600;

ClusterSnapshot cluster(int nodes, int gpus) {
  ClusterSnapshot s;
  s.system = SnapshotSystem::slurm;
  s.at = kNow;
  for (int n = 0; n < nodes; ++n)
    s.nodes.push_back({.name = "n" + std::to_string(n),
                       .gpus = gpus,
                       .accelerator = "a100",
                       .queues = {"batch"}});
  return s;
}

SnapshotJob running(const std::string& id, double elapsed, std::optional<double> limit,
                    std::vector<std::pair<std::string, int>> on) {
  SnapshotJob job{.id = id, .user = "u", .queue = "batch"};
  for (const auto& [node, gpus] : on) job.gpus += gpus;
  job.submit = job.start.emplace(kNow - std::int64_t(elapsed));
  if (limit) job.limit = Seconds{*limit};
  job.on = std::move(on);
  return job;
}

SnapshotJob start_forecast_waiting(const std::string& id, int gpus, double limit, double priority) {
  SnapshotJob job{.id = id, .user = "u", .queue = "batch", .gpus = gpus, .priority = priority};
  job.submit = kNow - 60;
  job.limit = Seconds{limit};
  return job;
}

Submission job_of(int gpus, double time, double limit) {
  Submission mine;
  mine.gpus = gpus;
  mine.accelerator = "a100";
  mine.queue = "batch";
  mine.limit = Seconds{limit};
  mine.times = {Seconds{time}};
  return mine;
}

/// `count` jobs of user u that took `share` of a limit of ten hours.
JobList history(int count, double share) {
  JobList list;
  for (int k = 0; k < count; ++k) {
    list.jobs.push_back(recorded_job(SimTime{} + to_clock(Seconds{k * 100 * kHour}),
                                     to_clock(Seconds{share * 10 * kHour}), 1,
                                     to_clock(Seconds{10 * kHour})));
    list.jobs.back().owner.user = list.names.users.number("u");
  }
  return list;
}

}  // namespace

TEST_CASE("without a history a job ends anywhere between now and its limit") {
  // Six of ten hours are left of the only job: the start is uniform on 0 .. 6 h.
  ClusterSnapshot s = cluster(1, 8);
  s.jobs = {running("7", 4 * kHour, 10 * kHour, {{"n0", 8}})};
  const StartForecast f = forecast_start(s, job_of(8, kHour, 2 * kHour), 4000, 1, 0);
  CHECK(f.start.p5 == Approx(0.05 * 6 * kHour).epsilon(0.12));
  CHECK(f.start.p50 == Approx(0.5 * 6 * kHour).epsilon(0.04));
  CHECK(f.start.p95 == Approx(0.95 * 6 * kHour).epsilon(0.02));
  CHECK(f.end.p50 == Approx(f.start.p50 + kHour).margin(1));
  CHECK(f.at_once == 0);
  REQUIRE(f.blockers.size() == 1);
  CHECK(s.jobs[f.blockers.front().job].id == "7");
  CHECK(f.blockers.front().share == Approx(1));
  CHECK(f.blockers.front().end.p50 == Approx(f.start.p50));
}

TEST_CASE("a job without a limit goes on for as long as it has run, in the median") {
  ClusterSnapshot s = cluster(1, 8);
  s.system = SnapshotSystem::kubernetes;
  s.jobs = {running("7", 3 * kHour, {}, {{"n0", 8}})};
  const StartForecast f = forecast_start(s, job_of(8, kHour, 2 * kHour), 4000, 1, 0);
  CHECK(f.start.p50 == Approx(3 * kHour).epsilon(0.05));
  CHECK(f.start.p95 == Approx(57 * kHour).epsilon(0.15));  // e / 0.05 - e
}

TEST_CASE("recorded jobs say which share of its limit a job takes") {
  ClusterSnapshot s = cluster(1, 8);
  s.jobs = {running("7", 3 * kHour, 10 * kHour, {{"n0", 8}})};
  s.history = history(30, 0.5);
  // Jobs that come later ask for one GPU and go behind: 5 h less 3 h.
  const StartForecast f = forecast_start(s, job_of(8, kHour, 2 * kHour), 50, 1, 0);
  CHECK(f.start.p5 == Approx(2 * kHour));
  CHECK(f.start.p95 == Approx(2 * kHour));
  // Where it has outlived all of them, the rest of its limit is as likely everywhere.
  s.jobs.front().start = kNow - std::int64_t(6 * kHour);
  const StartForecast late = forecast_start(s, job_of(8, kHour, 2 * kHour), 2000, 1, 0);
  CHECK(late.start.p50 == Approx(2 * kHour).epsilon(0.06));
}

TEST_CASE("a job that ends before the first in the queue can start is backfilled at once") {
  // n0 is held for 8 h more; the first that waits wants both nodes. n1 is free meanwhile.
  ClusterSnapshot s = cluster(2, 8);
  s.jobs = {running("7", 2 * kHour, 10 * kHour, {{"n0", 8}}),
            start_forecast_waiting("8", 16, 20 * kHour, 100)};
  Submission mine = job_of(8, kHour, 2 * kHour);
  const StartForecast shorter = forecast_start(s, mine, 500, 1, 0);
  CHECK(shorter.at_once == Approx(1));
  CHECK(shorter.ahead == 1);
  mine.limit = Seconds{30 * kHour};  // its limit tells the scheduler that it would be in the way
  const StartForecast longer = forecast_start(s, mine, 500, 1, 0);
  CHECK(longer.at_once == 0);
  CHECK(longer.first.p50 == 1);
  REQUIRE_FALSE(longer.blockers.empty());
  CHECK(s.jobs[longer.blockers.front().job].id == "8");
  CHECK(longer.blockers.front().waits);
  mine.priority = 101;  // now it is the first
  CHECK(forecast_start(s, mine, 500, 1, 0).at_once == Approx(1));
}

TEST_CASE("without reservations small jobs pass one that waits for nodes") {
  ClusterSnapshot s = cluster(2, 8);
  s.system = SnapshotSystem::kubernetes;
  s.jobs = {running("7", 2 * kHour, 10 * kHour, {{"n0", 8}}),
            start_forecast_waiting("8", 16, 20 * kHour, 100)};
  CHECK(forecast_start(s, job_of(8, kHour, 30 * kHour), 100, 1, 0).at_once == Approx(1));
}

TEST_CASE("what no node can hold never starts, and the forecast says why") {
  const ClusterSnapshot s = cluster(2, 8);
  const StartForecast large = forecast_start(s, job_of(32, kHour, kHour), 10, 1, 0);
  REQUIRE(large.never);
  CHECK(*large.never == "its nodes have 16");
  CHECK(std::isinf(large.start.p5));
  Submission other = job_of(8, kHour, kHour);
  other.accelerator = "h100";
  CHECK(forecast_start(s, other, 10, 1, 0).never ==
        "no node that is up has h100 in partition batch");
}

TEST_CASE("nodes that are down and jobs on them do not count") {
  ClusterSnapshot s = cluster(2, 8);
  s.nodes[0].usable = false;
  s.jobs = {running("7", 2 * kHour, 10 * kHour, {{"n0", 8}})};
  CHECK(forecast_start(s, job_of(8, kHour, kHour), 10, 1, 0).at_once == Approx(1));
  CHECK(forecast_start(s, job_of(16, kHour, kHour), 10, 1, 0).never.has_value());
  s.nodes[1].usable = false;
  CHECK(snapshot_problem(s) == "no node that is up has GPUs");
}

TEST_CASE("a later submit waits for what is left, and any number of threads tells the same") {
  ClusterSnapshot s = cluster(1, 8);
  s.jobs = {running("7", 4 * kHour, 10 * kHour, {{"n0", 8}})};
  Submission mine = job_of(8, kHour, 2 * kHour);
  mine.after = Seconds{6 * kHour};
  const StartForecast later = forecast_start(s, mine, 200, 1, 1);
  CHECK(later.at_once == Approx(1));
  CHECK(later.start.p50 == Approx(6 * kHour));
  mine.after = Seconds{};
  const StartForecast one = forecast_start(s, mine, 200, 3, 1),
                      four = forecast_start(s, mine, 200, 3, 4);
  CHECK(one.start.p50 == four.start.p50);
  CHECK(one.end.p95 == four.end.p95);
}

TEST_CASE("recorded jobs come later, and go behind those that wait") {
  // Two nodes; one is busy. A history of a job of 8 GPUs each 6 min that takes 5 h.
  ClusterSnapshot s = cluster(2, 8);
  s.jobs = {running("7", 4 * kHour, 10 * kHour, {{"n0", 8}})};
  for (int k = 0; k < 1000; ++k)
    s.history.jobs.push_back(recorded_job(SimTime{} + std::chrono::minutes(6 * k),
                                          std::chrono::hours(5), 8, to_clock(Seconds{10 * kHour})));
  Submission mine = job_of(16, kHour, 2 * kHour);
  const StartForecast now = forecast_start(s, mine, 200, 1, 0);
  CHECK(now.start.p95 < 10 * kHour);
  mine.after = Seconds{6 * kHour};  // sixty jobs came before it
  const StartForecast tonight = forecast_start(s, mine, 200, 1, 0);
  CHECK(tonight.start.p50 > 24 * kHour);
}

TEST_CASE("a queue of the cluster is the default, and another is told") {
  ClusterSnapshot s = cluster(2, 8);
  s.nodes.push_back({.name = "d0", .gpus = 4, .accelerator = "a100", .queues = {"debug"}});
  CHECK(likely_queue(s, "a100") == "batch");
  Submission mine = job_of(8, kHour, kHour);
  CHECK_FALSE(submission_problem(s, mine));
  mine.queue = "bacth";
  CHECK(*submission_problem(s, mine) ==
        "the cluster has no queue 'bacth'; did you mean 'batch'?; it has batch, debug");
}
