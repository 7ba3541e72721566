#include "sim/queue/pace/placement_pace.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <map>

#include "sim/queue/queue_question.h"

// Jobs whose pace follows the nodes that they get.
using namespace reckon;

namespace {

JobRequest paced(double submit, double seconds, int gpus, std::int32_t pace = 0) {
  JobRequest job =
      recorded_job(SimTime{} + to_clock(Seconds{submit}), to_clock(Seconds{seconds}), gpus);
  job.pace = pace;
  return job;
}

/// A pool each.
std::vector<NodeGroup> pools_of(std::vector<NodeGroup> groups) {
  for (NodeGroup& group : groups) group.pool = group.cell;
  return groups;
}

QueueQuestion two_pools(SchedulingPolicy policy = SchedulingPolicy::fifo) {
  QueueQuestion q;
  q.scheduler.policy = policy;
  q.groups = pools_of({{2, 4, 0}, {2, 4, 1}});
  q.group_names = q.pools = {"fast", "slow"};
  q.partitions.of_partition = {kAllCells};
  q.list.paces = {{{{1}, {0.5}}}};
  return q;
}

double start_of(const QueueRun& r, std::size_t k) {
  return double((*r.jobs[k].start - SimTime{}) / std::chrono::seconds(1));
}
double end_of(const QueueRun& r, std::size_t k) {
  return double((*r.jobs[k].end - SimTime{}) / std::chrono::seconds(1));
}

QueueRun run_of(const QueueQuestion& q) { return run_queue(q, q.list, 0, q.list.jobs.size()); }

}  // namespace

TEST_CASE("leaves are of one pool, whose nodes stand one behind the other") {
  const std::vector<NodeGroup> groups{{3, 8, 0}, {2, 4, 0}, {2, 8, 0}};
  const NodePlaces places =
      node_places(groups, std::vector<std::string>{"a100", "v100", "a100"}, 2);
  CHECK(places.pool == std::vector<std::int32_t>{0, 0, 0, 1, 1, 0, 0});
  CHECK(places.leaf == std::vector<std::int32_t>{0, 0, 1, 2, 2, 1, 3});
  const NodePlaces one = node_places(groups, std::vector<std::string>{"a100", "v100", "a100"}, 0);
  CHECK(one.leaf == std::vector<std::int32_t>(7, 0));
}

TEST_CASE("a gang has the pace of its slowest node, and of as many leaves as it spans") {
  const std::vector<NodeGroup> groups{{4, 8, 0}, {2, 8, 0}};
  const NodePlaces places = node_places(groups, std::vector<std::string>{"fast", "slow"}, 2);
  const std::vector<JobRequest> jobs{paced(0, 10, 16), paced(0, 10, 16, -1)};
  const std::vector<PlacementPace> paces{{{{1, 0.8}, {0.5, 0.4}}}};
  const JobPaces of(jobs, paces, places);
  const std::vector<NodePart> rack{{0, 8}, {1, 8}}, racks{{1, 8}, {2, 8}}, mixed{{3, 8}, {4, 8}};
  CHECK(of.pace(0, rack) == 1);
  CHECK(of.pace(0, racks) == 0.8);
  CHECK(of.pace(0, mixed) == 0.4);
  CHECK(of.pace(1, mixed) == 1);
  CHECK(of.time(0, mixed, std::chrono::seconds(10)) == std::chrono::seconds(25));
  CHECK(of.work(0, mixed, std::chrono::seconds(25)) == std::chrono::seconds(10));
}

TEST_CASE("jobs take longer on slower nodes, and those behind them wait for it") {
  for (const SchedulingPolicy policy : {SchedulingPolicy::fifo, SchedulingPolicy::easy_backfill}) {
    INFO(to_text(policy));
    QueueQuestion q = two_pools(policy);
    // Two nodes each: the fast ones, then the slow ones; the third waits for the fast ones.
    q.list.jobs = {paced(0, 100, 8), paced(0, 100, 8), paced(0, 100, 8)};
    const QueueRun r = run_of(q);
    CHECK(end_of(r, 0) == 100);
    CHECK(end_of(r, 1) == 200);
    CHECK(start_of(r, 2) == 100);
    CHECK(end_of(r, 2) == 200);
    CHECK(r.gpu_seconds == 8 * (100 + 200 + 100));
    // What a job needs at pace 1, over what was held.
    CHECK(*answers_of(r, q.list).goodput == Approx(300.0 / 400));
  }
}

TEST_CASE("a reservation counts with the end that a job has on its nodes") {
  QueueQuestion q = two_pools(SchedulingPolicy::easy_backfill);
  // The first holds the slow nodes until 200 in place of 100. All four nodes are the second's from
  // then on, so the third, of 150 s on the fast nodes, is no hindrance.
  q.groups = pools_of({{2, 4, 0}, {2, 4, 1}});
  q.list.paces.push_back({{{}, {0.5}}});
  q.list.jobs = {paced(0, 100, 8, 1), paced(1, 10, 16), paced(2, 150, 8)};
  const QueueRun r = run_of(q);
  CHECK(end_of(r, 0) == 200);
  CHECK(start_of(r, 2) == 2);
  CHECK(start_of(r, 1) == 200);
}

TEST_CASE("a pool on which a job does not run is never its own") {
  for (const SchedulingPolicy policy :
       {SchedulingPolicy::fifo, SchedulingPolicy::easy_backfill, SchedulingPolicy::srtf,
        SchedulingPolicy::las, SchedulingPolicy::kubernetes}) {
    INFO(to_text(policy));
    QueueQuestion q = two_pools(policy);
    q.list.paces = {{{{1}, {}}}};
    q.list.jobs = {paced(0, 100, 8), paced(0, 100, 8), paced(0, 1, 12)};
    const QueueRun r = run_of(q);
    CHECK(std::max(end_of(r, 0), end_of(r, 1)) == 200);
    REQUIRE(r.never == std::vector<std::size_t>{2});
    CHECK(note_of_never(q, q.list, r.never) ==
          "1 of the jobs can never run; the first, job 3, asks for 12 GPUs: its nodes have 8");
  }
}

TEST_CASE("a suspended job goes on with the work that is left, at the pace of its new nodes") {
  QueueQuestion q = two_pools(SchedulingPolicy::srtf);
  q.groups = pools_of({{1, 4, 0}, {1, 4, 1}});
  // A runs on the fast node. At 10 s a short B comes that needs both; A has 90 s of work left.
  q.list.jobs = {paced(0, 100, 4), paced(10, 5, 8)};
  const QueueRun r = run_of(q);
  CHECK(start_of(r, 1) == 10);
  CHECK(end_of(r, 1) == 20);  // of both pools: half the pace
  CHECK(end_of(r, 0) == 110);
  CHECK(r.jobs[0].preemptions == 1);
}

TEST_CASE("a preempted job keeps of its work what it did on slow nodes") {
  QueueQuestion q = two_pools(SchedulingPolicy::slurm);
  q.groups = {{1, 4, 1}};
  q.group_names = {"slow"};
  q.list.paces = {{{{0.5}}}};
  SlurmSpec slurm;
  slurm.preempt_mode = SlurmPreemptMode::requeue;
  slurm.requeue_delay = Seconds{0};
  slurm.checkpoint = Seconds{0};  // from where it was
  slurm.qos = {{.name = "low"}, {.name = "high", .priority = 1, .preempt = {"low"}}};
  slurm.weight_qos = 1;
  q.scheduler.slurm = slurm;
  q.list.jobs = {paced(0, 100, 4), paced(60, 10, 4)};
  q.list.jobs[0].owner.qos = q.list.names.qos.number("low");
  q.list.jobs[1].owner.qos = q.list.names.qos.number("high");
  const QueueRun r = run_of(q);
  CHECK(end_of(r, 1) == 80);
  CHECK(end_of(r, 0) == 220);  // 30 s of work in the first 60, 70 in the last 140
}

TEST_CASE("under every policy a job does its work, whatever nodes it has") {
  for (const SchedulingPolicy policy :
       {SchedulingPolicy::fifo, SchedulingPolicy::easy_backfill, SchedulingPolicy::sjf,
        SchedulingPolicy::srtf, SchedulingPolicy::las, SchedulingPolicy::slurm,
        SchedulingPolicy::kueue, SchedulingPolicy::kubernetes}) {
    INFO(to_text(policy));
    const bool held = rc::check("work", [&] {
      QueueQuestion q = two_pools(policy);
      q.groups = pools_of({{*rc::gen::inRange(1, 4), 4, 0}, {*rc::gen::inRange(1, 4), 4, 1}});
      q.nodes_per_leaf = *rc::gen::inRange(0, 3);
      q.list.paces = {{{{1, 0.7}, {0.5, 0.31}}}, {{{1}, {}}}};
      q.scheduler.slurm = SlurmSpec{};
      KueueSpec kueue;
      kueue.checkpoint = Seconds{0};
      for (const char* name : {"a", "b"}) {
        ClusterQueueSpec queue;
        queue.name = name;
        queue.cohort = "all";
        queue.preemption = {ReclaimPolicy::any, WithinPolicy::lower_priority};
        queue.flavors = {{"fast", 8, {}, {}}, {"slow", 8, {}, {}}};
        kueue.cluster_queues.push_back(queue);
      }
      q.scheduler.kueue = kueue;
      const int jobs = *rc::gen::inRange(1, 30);
      for (int k = 0; k < jobs; ++k) {
        q.list.jobs.push_back(paced(*rc::gen::inRange(0, 60), *rc::gen::inRange(1, 50),
                                    *rc::gen::inRange(1, 13), *rc::gen::inRange(-1, 2)));
        q.list.jobs.back().owner.queue =
            q.list.names.queues.number(*rc::gen::inRange(0, 2) ? "a" : "b");
        q.list.jobs.back().owner.priority = *rc::gen::inRange(0, 3);
      }
      std::vector<Holding> holdings;
      RunOptions options;
      options.holdings = &holdings;
      const QueueRun r = run_queue(q, q.list, 0, q.list.jobs.size(), options);
      const NodePlaces places = node_places(q.groups, q.group_names, q.nodes_per_leaf);
      const JobPaces paces(q.list.jobs, q.list.paces, places);
      std::map<std::pair<std::size_t, SimTime>, std::vector<Holding>> spans;
      for (const Holding& h : holdings) spans[{h.job, h.begin}].push_back(h);
      std::vector<double> done(q.list.jobs.size(), 0);
      for (const auto& [at, parts] : spans) {
        std::vector<NodePart> on;
        for (const Holding& h : parts) on.push_back(h.part);
        done[at.first] += to_seconds(paces.work(at.first, on, parts[0].end - at.second)).count();
      }
      for (std::size_t k = 0; k < done.size(); ++k) {
        if (!r.jobs[k].end) continue;
        const double length = to_seconds(std::get<FixedTime>(q.list.jobs[k].work).time).count();
        // Preemption of policy kubernetes starts a job again.
        if (policy == SchedulingPolicy::kubernetes)
          RC_ASSERT(done[k] >= length - 1e-6);
        else
          RC_ASSERT(std::abs(done[k] - length) < 1e-6);
      }
    });
    CHECK(held);
  }
}

TEST_CASE("at pace 1 on all nodes nothing changes") {
  for (const SchedulingPolicy policy : {SchedulingPolicy::fifo, SchedulingPolicy::easy_backfill,
                                        SchedulingPolicy::srtf, SchedulingPolicy::las}) {
    QueueQuestion q = two_pools(policy);
    for (int k = 0; k < 60; ++k)
      q.list.jobs.push_back(paced(k * 7 % 50, 3.3 * (k % 11) + 0.1, 1 + k * 5 % 16));
    q.list.paces = {{{{1, 1}, {1}}}};
    const QueueRun with = run_of(q);
    q.list.paces.clear();
    const QueueRun without = run_of(q);
    for (std::size_t k = 0; k < q.list.jobs.size(); ++k) {
      CHECK(with.jobs[k].start == without.jobs[k].start);
      CHECK(with.jobs[k].end == without.jobs[k].end);
    }
    CHECK(with.gpu_seconds == without.gpu_seconds);
  }
}
