#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "lives.h"

// Several jobs on the same nodes.
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

struct Jobs {
  Plan plan;
  std::vector<JobPace> paces;
  LifeOptions options;
  LifeResult run() const { return simulate_life(plan, requests_of(plan, paces), options); }
};

/// Jobs of 1,000 steps of 1 s, each on `workers` nodes of a pool of `nodes`, submitted at
/// `submits`.
Jobs jobs_on(int nodes, int workers, const std::vector<Seconds>& submits) {
  const Case one = round_case(nodes, 1);
  Jobs c{one.plan, {}, one.options};
  c.plan.jobs.clear();
  for (const Seconds submit : submits) {
    PlannedWorkload job = one.plan.jobs[0];
    job.name = "job-" + std::to_string(c.plan.jobs.size());
    job.submit = submit;
    job.strategy.workers = workers;
    c.plan.jobs.push_back(job);
    JobPace pace = one.pace;
    pace.step_by_workers.assign(std::size_t(workers) + 1, Seconds{1});
    c.paces.push_back(pace);
  }
  return c;
}

double finish_of(const LifeResult& life, std::size_t job) {
  return double(life.jobs[job].finish.time_since_epoch().count()) / 1e9;
}
double queued(const LifeResult& life, std::size_t job) {
  return double(life.jobs[job].queued.count()) / 1e9;
}

void jobs_autoscaled(Jobs& c, int initial, int min, int max) {
  PlannedPool& pool = c.plan.pools[0];
  pool.autoscaling = true;
  pool.nodes_initial = initial;
  pool.nodes_min = min;
  pool.nodes_max = max;
}

}  // namespace

TEST_CASE("jobs that need all nodes run one after the other, first submitted first") {
  Jobs c = jobs_on(2, 2, {10s, 5s, 0s});
  const LifeResult life = c.run();
  // Nodes are ready at 100; 1,000 s each, the last of the list first.
  CHECK(finish_of(life, 2) == 1100);
  CHECK(finish_of(life, 1) == 2100);
  CHECK(finish_of(life, 0) == 3100);
  CHECK(queued(life, 0) == 2100 - 10);
  CHECK(finish_seconds(life) == 3100);
  CHECK(life.finished);
  CHECK(life.steps_done == 3000);
  // Two accelerators each: waiting for the nodes (100 s less the submits) and for the others.
  CHECK(badput(life, Badput::provisioning) == Approx(2 * (100 + 95 + 90)));
  CHECK(badput(life, Badput::waiting) == Approx(2 * (1000 + 2000)));
  CHECK(goodput(life) == Approx(2 * 3000));
}

TEST_CASE("jobs that fit beside each other run at once, and the makespan is that of the last") {
  const LifeResult life = jobs_on(3, 1, {0s, 0s, 500s}).run();
  CHECK(finish_of(life, 0) == 1100);
  CHECK(finish_of(life, 1) == 1100);
  CHECK(finish_of(life, 2) == 1500);
  CHECK(badput(life, Badput::waiting) == 0);
}

TEST_CASE("a job waits for its whole gang, and what comes later does not overtake it") {
  // 3 nodes; the first takes 2, the second wants 2 and gets 1 at once; the third would fit on it.
  Jobs c = jobs_on(3, 2, {0s, 1s, 2s});
  c.plan.jobs[2].strategy.workers = 1;
  c.paces[2].step_by_workers.assign(2, Seconds{1});
  const LifeResult life = c.run();
  CHECK(finish_of(life, 0) == 1100);
  CHECK(finish_of(life, 1) == 2100);
  CHECK(finish_of(life, 2) == 2100);  // on the node that the second did not need
}

TEST_CASE("a pool that is empty by day grows for each night's job and shrinks after it") {
  Jobs c = jobs_on(1, 1, {0s, 24h, 48h});
  jobs_autoscaled(c, 0, 0, 1);
  const LifeResult life = c.run();
  REQUIRE(life.finished);
  for (const std::size_t night : {0u, 1u, 2u}) {
    // A scan of at most 10 s and 100 s to the node.
    const double took = finish_of(life, night) - double(night) * 24 * 3600;
    CHECK(took >= 1100);
    CHECK(took <= 1110);
  }
  // Each night's node is billed for the run and until it has been unneeded for 10 min; not by day.
  const double billed = to_seconds(life.node_time[0]).count();
  CHECK(billed >= 3 * 1100);
  CHECK(billed <= 3 * (1100 + 600 + 20));
}

TEST_CASE("nodes of a pool that does not scale are paid for between the jobs too") {
  const LifeResult life = jobs_on(1, 1, {0s, 24h}).run();
  CHECK(to_seconds(life.node_time[0]).count() == Approx(24 * 3600 + 1000).margin(1));
  CHECK(cost(life, CostPart::idle) > cost(life, CostPart::machines));
}

TEST_CASE("a reclaim stops the job on that node and no other") {
  Jobs c = jobs_on(2, 1, {0s, 0s});
  c.plan.pools[0].pricing = CapacityType::spot;
  c.plan.reclaim.law = TraceReclaim{};
  c.plan.reclaim.trace = {{}, {600s}};
  const LifeResult life = c.run();
  CHECK(finish_of(life, 0) == 1100);
  // 500 s are lost; a new node after 100 s.
  CHECK(finish_of(life, 1) == 600 + 100 + 1000);
  CHECK(count(life, Interruption::preemption) == 1);
  CHECK(badput(life, Badput::lost_work) == Approx(500));
}

TEST_CASE("a job that can never be placed does not hold up the others") {
  Jobs c = jobs_on(2, 1, {0s, 10s});
  c.plan.jobs[0].strategy.workers = 5;
  c.paces[0].step_by_workers.assign(6, Seconds{1});
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK_FALSE(life.jobs[0].finished);
  CHECK(life.jobs[1].finished);
  CHECK_THAT(life.failure, Catch::Contains("5 workers do not fit"));
}

TEST_CASE("one job in a list lives the life of one job alone") {
  Case one = round_case(3, 2);
  checkpoints(one, 100s, 10s, 5s);
  reclaim_at(one, {{333s}, {}, {700s, 1500s}}, 30s);
  const LifeResult alone = one.run();
  const LifeResult listed = simulate_life(one.plan, requests_of(one.plan, {one.pace}), one.options);
  CHECK(alone.digest == listed.digest);
  CHECK(alone.bill == listed.bill);
}

TEST_CASE("ledgers of many jobs add up whatever happens to the nodes") {
  CHECK(rc::check([] {
    const int nodes = *rc::gen::inRange(1, 5);
    std::vector<Seconds> submits;
    const int jobs = *rc::gen::inRange(1, 6);
    for (int k = 0; k < jobs; ++k) submits.emplace_back(*rc::gen::inRange(0, 4000));
    Jobs c = jobs_on(nodes, *rc::gen::inRange(1, nodes + 1), submits);
    if (*rc::gen::arbitrary<bool>()) jobs_autoscaled(c, 0, 0, nodes);
    c.plan.pools[0].pricing = CapacityType::spot;
    c.plan.reclaim.law = ExponentialReclaim{Seconds{double(*rc::gen::inRange(500, 20000))}};
    c.plan.reclaim.notice = 30s;
    for (JobPace& pace : c.paces) {
      pace.checkpoint_interval = Seconds{100};
      pace.checkpoint_save = Seconds{double(*rc::gen::inRange(0, 20))};
    }
    c.options.replication = *rc::gen::inRange<std::uint32_t>(0, 1000);
    const LifeResult life = c.run();  // end() CHECKs that times and money add up exactly
    RC_ASSERT(life.jobs.size() == submits.size());
    RC_ASSERT(life.finished);
    SimTime last{};
    for (const JobOutcome& job : life.jobs) {
      RC_ASSERT(job.finish >= job.submit);
      RC_ASSERT(job.finish - job.submit >= job.queued);
      last = std::max(last, job.finish);
    }
    RC_ASSERT(life.finish == last);
    RC_ASSERT(c.run().digest == life.digest);
  }));
}
