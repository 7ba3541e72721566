#include <catch2/catch.hpp>
#include <cmath>

#include "lives.h"

// Slurm's power saving [slurm.schedmd.com, "Power Saving Guide"].
using namespace reckon;
using namespace reckon::test;

namespace {

Case with_slurm(int nodes = 1) {
  Case c = round_case(nodes);
  autoscale(c, 0, 0, nodes);
  c.plan.slurm = SlurmPowerSpec{.suspend_time = Seconds{300}, .resume_timeout = Seconds{600}};
  return c;
}

double slurm_node_seconds(const LifeResult& life) {
  return std::round(to_seconds(life.node_time[0]).count() * 1e3) / 1e3;
}

/// A second job, of the same nodes.
LifeResult two_jobs(Case& c, double submit) {
  c.plan.jobs.resize(1, c.plan.jobs[0]);
  c.plan.jobs.push_back(c.plan.jobs[0]);
  c.plan.jobs[1].submit = Seconds{submit};
  const std::vector<JobPace> paces(2, c.pace);
  return simulate_life(c.plan, requests_of(c.plan, paces), c.options);
}
double second_end(const LifeResult& life) {
  return to_seconds(life.jobs[1].finish - SimTime{}).count();
}

}  // namespace

TEST_CASE("a job's nodes are resumed at once, and suspended SuspendTime after it") {
  Case c = with_slurm(2);
  c.plan.jobs[0].submit = Seconds{3};
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 3 + 100 + 1000);
  // Idle from 1,103; the thread of power saving looks at 1,410.
  CHECK(slurm_node_seconds(life) == 2 * (1410 - 3));
}

TEST_CASE("without SuspendTime nodes stay until the last job is over") {
  Case c = with_slurm();
  autoscale(c, 1, 0, 1);
  c.plan.slurm->suspend_time.reset();
  CHECK(slurm_node_seconds(two_jobs(c, 9000)) == 9000 + 1000);
}

TEST_CASE("ResumeRate is how many nodes are resumed in a minute") {
  Case c = with_slurm(5);
  c.plan.slurm->resume_rate = 2;
  // Two at 0, two at 60, one at 120.
  CHECK(finish_seconds(c.run()) == 120 + 100 + 1000);
  c.plan.slurm->resume_rate = 0;
  CHECK(finish_seconds(c.run()) == 0 + 100 + 1000);
}

TEST_CASE("SuspendRate is how many nodes are suspended in a minute") {
  Case c = with_slurm(5);
  c.plan.slurm->suspend_rate = 2;
  CHECK(slurm_node_seconds(c.run()) == 2 * 1400 + 2 * 1460 + 1520);
  c.plan.slurm->suspend_rate = 0;
  CHECK(slurm_node_seconds(c.run()) == 5 * 1400);
}

TEST_CASE("a node that is not there by ResumeTimeout is DOWN and not resumed again") {
  Case c = with_slurm();
  c.plan.pools[0].provisioning = Fact<Seconds>{Seconds{601}};
  c.options.horizon = Seconds{20'000};
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK(life.bill == NanoUsd{});
  c.plan.slurm->resume_timeout = Seconds{601};
  CHECK(finish_seconds(c.run()) == 601 + 1000);
}

TEST_CASE(
    "with idle_on_node_suspend a DOWN node comes back behind SuspendTime and SuspendTimeout") {
  Case c = with_slurm();
  Fact<Seconds>& delay = c.plan.pools[0].provisioning;
  delay = Fact<Seconds>{Seconds{600}};
  delay.low = Seconds{550};
  delay.high = Seconds{655};
  // A seed whose first resume is late and whose second is not.
  c.plan.slurm->idle_on_node_suspend = true;
  c.options.horizon = Seconds{3000};
  for (c.options.seed = 1; c.options.seed < 100; ++c.options.seed) {
    c.plan.slurm->idle_on_node_suspend = false;
    if (c.run().finished) continue;
    c.plan.slurm->idle_on_node_suspend = true;
    const LifeResult life = c.run();
    if (!life.finished) continue;
    // DOWN at 600, powered down at 900, resumed at 930.
    CHECK(finish_seconds(life) > 930 + 500 + 1000);
    CHECK(finish_seconds(life) <= 930 + 600 + 1000);
    return;
  }
  FAIL("no such seed");
}

TEST_CASE("a suspended node cannot be resumed before SuspendTimeout") {
  Case c = with_slurm();
  c.plan.slurm->suspend_timeout = Seconds{200};
  // Idle from 1,100, suspended at 1,400, free for a resume at 1,600.
  CHECK(second_end(two_jobs(c, 1390)) == 1390 + 1000);
  CHECK(second_end(two_jobs(c, 1410)) == 1600 + 100 + 1000);
  CHECK(second_end(two_jobs(c, 1700)) == 1700 + 100 + 1000);
}

TEST_CASE("nodes of SuspendExcNodes are never suspended") {
  Case c = with_slurm(3);
  autoscale(c, 3, 0, 3);
  c.plan.jobs[0].strategy.workers = 1;
  c.pace.step_by_workers.resize(2);
  c.plan.slurm->suspend_exc_nodes = {{"workers", 2}};
  // One of the two idle nodes goes at 400; the other two are there for the second job at 9,000.
  const LifeResult life = two_jobs(c, 9000);
  CHECK(second_end(life) == 9000 + 1000);
  CHECK(slurm_node_seconds(life) == 400 + 2 * 10'000);
  c.plan.slurm->suspend_exc_nodes = {{"workers", std::nullopt}};
  CHECK(slurm_node_seconds(two_jobs(c, 9000)) == 3 * 10'000);
}
