#include "sim/cluster/job_request.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "sim/cluster/life/life.h"
#include "sim/queue/fifo.h"
#include "support/plans.h"

// Recorded jobs in the life of a cluster: no plan of theirs is needed.
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

/// Nodes of one pool, there from the start, on which nothing happens and a start takes no time.
PlannedCluster fixed_nodes(int nodes, int gpus) {
  Plan plan;
  plan.pools.push_back(round_pool("workers", Role::worker, nodes, gpus));
  set_rules(plan);
  plan.pools[0].provisioning = Fact<Seconds>{0s, {}};
  return plan;
}

}  // namespace

TEST_CASE(
    "jobs that take whole nodes start and end in a life as they do first come, first served") {
  const bool held = rc::check("the same times", [] {
    const int nodes = *rc::gen::inRange(1, 6), gpus = *rc::gen::inRange(1, 9);
    std::vector<JobRequest> jobs;
    const int n = *rc::gen::inRange(1, 60);
    for (int k = 0; k < n; ++k)
      jobs.push_back(recorded_job(SimTime{} + to_clock(Seconds(*rc::gen::inRange(1, 100))),
                                  to_clock(Seconds(*rc::gen::inRange(1, 50))),
                                  gpus * *rc::gen::inRange(1, nodes + 1)));
    const QueueRun queue = run_fifo(jobs, std::vector<NodeGroup>{{nodes, gpus}}, 0, jobs.size());
    const LifeResult life = simulate_life(fixed_nodes(nodes, gpus), jobs, {});
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      RC_ASSERT(life.jobs[k].submit + life.jobs[k].queued == *queue.jobs[k].start);
      RC_ASSERT(life.jobs[k].finish == *queue.jobs[k].end);
    }
  });
  CHECK(held);
}

TEST_CASE("a hundred thousand recorded jobs live on one cluster without a plan of any") {
  constexpr int kJobs = 100'000, kNodes = 50, kGpus = 8;
  std::vector<JobRequest> jobs;
  for (int k = 0; k < kJobs; ++k)  // one a second, for 30 to 36 s
    jobs.push_back(recorded_job(SimTime{} + std::chrono::seconds(10 + k), 30s + k % 7 * 1s, kGpus));
  const LifeResult life = simulate_life(fixed_nodes(kNodes, kGpus), jobs, {});
  CHECK(life.finished);
  CHECK(life.jobs.size() == kJobs);
  // Never more than 36 run at once, so none waits.
  for (const JobOutcome& job : life.jobs) REQUIRE(job.queued == SimDuration{0});
  CHECK(life.jobs.back().finish ==
        SimTime{} + std::chrono::seconds(10 + kJobs - 1 + 30 + (kJobs - 1) % 7));
}

TEST_CASE("a request that is larger than the cluster is given up, the others run") {
  const std::vector<JobRequest> jobs{recorded_job(SimTime{}, 10s, 24),
                                     recorded_job(SimTime{}, 10s, 8)};
  const LifeResult life = simulate_life(fixed_nodes(2, 8), jobs, {});
  CHECK_FALSE(life.jobs[0].finished);
  CHECK(life.jobs[0].failure ==
        "the job's 1 workers do not fit: the pools hold 0 of them at their largest");
  CHECK(life.jobs[1].finished);
}
