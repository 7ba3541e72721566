#include "sim/queue/fifo.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"
#include "sim/queue/backfill/backfill.h"

using namespace reckon;
using Catch::Contains;

namespace {

JobRequest job(double submit, double duration, int gpus) {
  return recorded_job(SimTime{} + to_clock(Seconds{submit}), to_clock(Seconds{duration}), gpus);
}
FixedTime& time_of(JobRequest& job) { return std::get<FixedTime>(job.work); }
double start(const QueueRun& run, std::size_t k) {
  return to_seconds(*run.jobs[k].start - SimTime{}).count();
}

/// Mean waiting of M/M/c [Erlang 1917]: C(c, a) / (c mu - lambda).
double erlang_waiting(int servers, double arrivals, double service) {
  const double load = arrivals * service;
  double term = 1, sum = 1;
  for (int k = 1; k < servers; ++k) sum += term *= load / k;
  term *= load / servers;
  const double busy = term / (1 - load / servers);
  return busy / (sum + busy) / (servers / service - arrivals);
}

}  // namespace

TEST_CASE("nobody overtakes the first that waits") {
  const std::vector<NodeGroup> nodes{{2, 4}};
  const QueueRun r =
      run_fifo(std::vector<JobRequest>{job(0, 100, 3), job(1, 50, 4), job(2, 10, 4), job(3, 10, 1)},
               nodes, 0, 4);
  CHECK(start(r, 0) == 0);
  CHECK(start(r, 1) == 1);
  CHECK(start(r, 2) == 51);  // the second node is free again
  CHECK(start(r, 3) == 51);  // one GPU was free all the time
  CHECK(r.waiting.mean == Approx((49 + 48) / 4.0));
  CHECK(r.makespan_seconds == 100);
  CHECK(r.utilization == Approx((300 + 200 + 40 + 10) / 800.0));
}

TEST_CASE("a gang takes one node where it fits, whole nodes and a rest where it does not") {
  const std::vector<NodeGroup> nodes{{3, 4}};
  // 3 of node 0, so that 1 is left there; 6 need a whole node and two of another.
  const QueueRun r =
      run_fifo(std::vector<JobRequest>{job(0, 10, 3), job(0, 10, 6), job(0, 10, 2), job(0, 5, 2)},
               nodes, 0, 4);
  CHECK(start(r, 1) == 0);
  CHECK(start(r, 2) == 0);   // beside the rest of the gang
  CHECK(start(r, 3) == 10);  // one GPU of node 0 is free and none elsewhere
}

TEST_CASE("a job that no empty cluster holds is told and keeps nobody waiting") {
  const std::vector<NodeGroup> nodes{{2, 4}};
  const QueueRun r = run_fifo(std::vector<JobRequest>{job(0, 10, 9), job(0, 10, 8)}, nodes, 0, 2);
  CHECK(r.never == std::vector<std::size_t>{0});
  CHECK_FALSE(r.jobs[0].start);
  CHECK(start(r, 1) == 0);
}

TEST_CASE("waiting is that of M/M/c") {
  constexpr int kServers = 5;
  constexpr double kService = 100, kUse = 0.8;
  const double rate = kUse * kServers / kService;
  RandomStream stream(11, 0, Purpose{"test"}, 0);
  std::vector<JobRequest> jobs;
  double now = 0;
  for (int k = 0; k < 400'000; ++k) {
    now += stream.exponential() / rate;
    jobs.push_back(job(now, stream.exponential() * kService, 1));
  }
  const QueueRun r = run_fifo(jobs, std::vector<NodeGroup>{{kServers, 1}}, 0, jobs.size());
  CHECK(r.waiting.mean == Approx(erlang_waiting(kServers, rate, kService)).epsilon(0.05));
  CHECK(r.utilization == Approx(kUse).epsilon(0.01));
}

TEST_CASE("GPUs in use never exceed those of the cluster, and starts keep the order") {
  const bool held = rc::check("capacity and order", [] {
    const std::vector<NodeGroup> groups{{*rc::gen::inRange(1, 4), 4}, {*rc::gen::inRange(0, 3), 2}};
    std::vector<JobRequest> jobs;
    const int n = *rc::gen::inRange(1, 60);
    for (int k = 0; k < n; ++k)
      jobs.push_back(
          job(*rc::gen::inRange(0, 100), *rc::gen::inRange(0, 50), *rc::gen::inRange(1, 12)));
    const QueueRun r = run_fifo(jobs, groups, 0, jobs.size());
    const int gpus = groups[0].nodes * 4 + groups[1].nodes * 2;
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      if (!r.jobs[k].start) continue;
      RC_ASSERT(*r.jobs[k].start >= jobs[k].submit);
      RC_ASSERT(*r.jobs[k].end - *r.jobs[k].start == time_of(jobs[k]).time);
      int in_use = 0;
      for (std::size_t m = 0; m < jobs.size(); ++m) {
        if (!r.jobs[m].start) continue;
        if (*r.jobs[m].start <= *r.jobs[k].start && *r.jobs[k].start < *r.jobs[m].end)
          in_use += jobs[m].gpus();
        if (jobs[m].submit < jobs[k].submit) RC_ASSERT(*r.jobs[m].start <= *r.jobs[k].start);
      }
      RC_ASSERT(in_use <= gpus);
    }
  });
  CHECK(held);
}

TEST_CASE("EASY backfill starts what does not delay the first that waits") {
  // Ten nodes of one GPU; worked out by hand.
  struct Expected {
    JobRequest job;
    double start;
  };
  std::vector<Expected> jobs{
      {job(0, 100, 6), 0},
      {job(1, 50, 4), 1},
      {job(2, 40, 8), 100},   // reserved from 51 on: at 100 it leaves two GPUs
      {job(3, 200, 2), 51},   // on these two
      {job(4, 30, 3), 140},   // does not fit beside them
      {job(5, 49, 1), 51},    // ends as the reservation begins
      {job(60, 41, 1), 140},  // would end a second too late
      {job(60, 40, 1), 60},   // just in time
      {job(110, 5, 1), 140},  // one is left then
      {job(120, 5, 4), 145},  // asks for 10 s, which only others plan with
      {job(130, 500, 7), 170},
      {job(131, 20, 1), 150},  // nine seconds after the reservation of job 9 is over
  };
  time_of(jobs[9].job).limit = std::chrono::seconds(10);
  std::vector<JobRequest> list;
  for (const Expected& e : jobs) list.push_back(e.job);
  const QueueRun r = run_easy_backfill(list, std::vector<NodeGroup>{{10, 1}}, 0, list.size());
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    INFO("job " << k);
    CHECK(start(r, k) == Approx(jobs[k].start));
  }
}

TEST_CASE("under EASY backfill nodes are never overbooked, and no job is forgotten") {
  const bool held = rc::check("capacity", [] {
    const std::vector<NodeGroup> groups{{*rc::gen::inRange(1, 4), 4}, {*rc::gen::inRange(0, 3), 2}};
    std::vector<JobRequest> jobs;
    const int n = *rc::gen::inRange(1, 60);
    for (int k = 0; k < n; ++k) {
      jobs.push_back(
          job(*rc::gen::inRange(0, 100), *rc::gen::inRange(0, 50), *rc::gen::inRange(1, 12)));
      if (*rc::gen::inRange(0, 2) == 1)
        time_of(jobs.back()).limit = to_clock(Seconds{double(*rc::gen::inRange(0, 80))});
    }
    const QueueRun r = run_easy_backfill(jobs, groups, 0, jobs.size());
    const int gpus = groups[0].nodes * 4 + groups[1].nodes * 2;
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      RC_ASSERT(r.jobs[k].start.has_value() !=
                limit_that_binds(jobs[k].gpus(), groups).has_value());
      if (!r.jobs[k].start) continue;
      RC_ASSERT(*r.jobs[k].start >= jobs[k].submit);
      int in_use = 0;
      for (std::size_t m = 0; m < jobs.size(); ++m)
        if (r.jobs[m].start && *r.jobs[m].start <= *r.jobs[k].start &&
            *r.jobs[k].start < *r.jobs[m].end)
          in_use += jobs[m].gpus();
      RC_ASSERT(in_use <= gpus);
    }
  });
  CHECK(held);
}

TEST_CASE("where no job overtakes, EASY backfill is first come, first served") {
  std::vector<JobRequest> jobs;
  for (int k = 0; k < 200; ++k) jobs.push_back(job(k, 30 + k % 7, 8));  // each needs all GPUs
  const std::vector<NodeGroup> nodes{{2, 4}};
  const QueueRun easy = run_easy_backfill(jobs, nodes, 0, jobs.size());
  const QueueRun fifo = run_fifo(jobs, nodes, 0, jobs.size());
  for (std::size_t k = 0; k < jobs.size(); ++k) CHECK(easy.jobs[k].start == fifo.jobs[k].start);
}

TEST_CASE("the limit that keeps a job from ever running is told") {
  const std::vector<NodeGroup> nodes{{3, 8}, {2, 4}};
  CHECK_FALSE(limit_that_binds(28, nodes));
  CHECK(limit_that_binds(33, nodes) == "the cluster has 32");
  CHECK(limit_that_binds(30, nodes) ==
        "a gang takes whole nodes of 8 GPUs and one more for its rest, and there are 3 such nodes");
}
