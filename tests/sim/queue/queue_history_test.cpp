#include "sim/queue/queue_history.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "sim/queue/job_story.h"
#include "sim/queue/queue_question.h"

using namespace reckon;

namespace {

JobRequest history_job(double submit, double length, int gpus) {
  return recorded_job(SimTime{} + to_clock(Seconds{submit}), to_clock(Seconds{length}), gpus);
}

/// Two nodes of four. Jobs: 0 holds three GPUs of a node for 100 s, 1 wants both nodes for 50 s at
/// 20 s, 2 two GPUs for 60 s at 30 s, which fit beside job 0 until it ends.
struct Example {
  QueueQuestion question;
  std::vector<Holding> holdings;
  QueueRun run;
  QueueSeries series;

  Example() {
    question.scheduler.policy = SchedulingPolicy::easy_backfill;
    question.groups = {{2, 4, 0}};
    question.list.jobs = {history_job(0, 100, 3), history_job(20, 50, 8), history_job(30, 60, 2)};
    RunOptions options;
    options.holdings = &holdings;
    run = run_queue(question, question.list, 0, 3, options);
    series = queue_series(question.list, run, {holdings, question.groups}, 15);
  }
};

}  // namespace

TEST_CASE("holdings tell who had which GPUs when, and add up to the GPU time") {
  const Example e;
  CHECK(e.run.jobs[1].start == SimTime{} + std::chrono::seconds(100));
  CHECK(e.run.jobs[2].start == SimTime{} + std::chrono::seconds(30));
  double gpu_seconds = 0;
  for (const Holding& h : e.holdings)
    gpu_seconds += to_seconds(h.end - h.begin).count() * h.part.gpus;
  CHECK(gpu_seconds == Approx(e.run.gpu_seconds));
  CHECK(e.holdings.size() == 4);  // job 1 on two nodes
}

TEST_CASE("a queue over time: who waits, what is in use, what is free and of no use") {
  const Example e;
  REQUIRE(e.series.waiting.size() == 15);  // of ten seconds each: 0 .. 150 s
  CHECK(e.series.span.count() == Approx(10));
  CHECK(e.series.waiting[1] == 0);
  CHECK(e.series.waiting[2] == Approx(1));  // job 1 from 20 s to 100 s; job 2 never waits
  CHECK(e.series.waiting[9] == Approx(1));
  CHECK(e.series.waiting[10] == 0);
  CHECK(e.series.in_use[0] == Approx(3));
  CHECK(e.series.in_use[3] == Approx(5));
  CHECK(e.series.in_use[9] == Approx(3));
  CHECK(e.series.in_use[12] == Approx(8));
  // Pods of the list: 3, 4, 4 and 2 GPUs. Three of a node with three, one of one with four in use:
  // on the first one GPU is free, which no pod can use; on the second four, which all can.
  CHECK(e.series.stranded[0] == Approx(1));
  // From 30 s on the second has two free, of use for one pod of four: 1 + 2 x 3/4.
  CHECK(e.series.stranded[4] == Approx(1 + 2 * 0.75));
  CHECK(e.series.stranded[12] == 0);
  const auto use = node_use({e.holdings, e.question.groups}, e.series);
  REQUIRE(use.size() == 2);
  CHECK(use[0][0] + use[1][0] == Approx(0.75));
  CHECK(use[0][12] == Approx(1));
}

TEST_CASE("a job's story tells how long it waited, for what, and who overtook it") {
  const Example e;
  const JobStory story = story_of(1, e.question.list, e.run, {e.holdings, e.question.groups});
  REQUIRE(story.held.size() == 1);
  CHECK(story.held.front().parts.size() == 2);
  CHECK(story.free_at_submit == 5);
  CHECK(story.waiting_before == 0);
  CHECK(story.overtook == 1);  // job 2
  CHECK(story.largest == 4);
  CHECK(story.too_scattered == 0);  // never eight GPUs
  CHECK(story.kept_for_others == 0);
  CHECK(typical_wait(e.run) == 1);
}

TEST_CASE("a story tells GPUs that were kept from those that were on too many nodes") {
  QueueQuestion q;
  q.scheduler.policy = SchedulingPolicy::easy_backfill;
  q.groups = {{2, 4, 0}};
  // Job 2 would fit beside job 0 from its submit at 2 on, but job 1 has both nodes from 100 to 110.
  q.list.jobs = {history_job(0, 100, 4), history_job(1, 10, 8), history_job(2, 200, 4)};
  std::vector<Holding> holdings;
  RunOptions options;
  options.holdings = &holdings;
  const QueueRun kept = run_queue(q, q.list, 0, 3, options);
  REQUIRE(kept.jobs[2].start == SimTime{} + std::chrono::seconds(110));
  const JobStory first = story_of(2, q.list, kept, {holdings, q.groups});
  CHECK(first.kept_for_others == Approx(98.0 / 108));
  CHECK(first.too_scattered == 0);
  // Three of four GPUs of each node are held: two are free, one on each.
  q.list.jobs = {history_job(0, 100, 3), history_job(0, 100, 3), history_job(1, 10, 2)};
  holdings.clear();
  const QueueRun scattered = run_queue(q, q.list, 0, 3, options);
  REQUIRE(scattered.jobs[2].start == SimTime{} + std::chrono::seconds(100));
  const JobStory second = story_of(2, q.list, scattered, {holdings, q.groups});
  CHECK(second.too_scattered == Approx(1));
  CHECK(second.kept_for_others == 0);
}

TEST_CASE("a job that is suspended holds its GPUs in parts, and its story says so") {
  QueueQuestion q;
  q.scheduler.policy = SchedulingPolicy::srtf;
  q.groups = {{1, 4, 0}};
  q.list.jobs = {history_job(0, 100, 4), history_job(10, 20, 4)};
  std::vector<Holding> holdings;
  RunOptions options;
  options.holdings = &holdings;
  const QueueRun run = run_queue(q, q.list, 0, 2, options);
  const JobStory story = story_of(0, q.list, run, {holdings, q.groups});
  REQUIRE(story.held.size() == 2);
  CHECK(story.held[0].end == SimTime{} + std::chrono::seconds(10));
  CHECK(story.held[1].begin == SimTime{} + std::chrono::seconds(30));
  const QueueSeries series = queue_series(q.list, run, {holdings, q.groups}, 12);
  CHECK(series.waiting[0] == 0);
  CHECK(series.waiting[1] == Approx(1));  // it waits while the shorter one runs
  CHECK(series.waiting[3] == 0);
}

TEST_CASE("every policy notes all GPU time that it hands out") {
  for (const auto policy : {SchedulingPolicy::fifo, SchedulingPolicy::easy_backfill,
                            SchedulingPolicy::sjf, SchedulingPolicy::srtf, SchedulingPolicy::las,
                            SchedulingPolicy::slurm, SchedulingPolicy::kueue}) {
    INFO(to_text(policy));
    QueueQuestion q;
    q.scheduler.policy = policy;
    q.groups = {{3, 4, 0}};
    q.pools = {"pool"};
    q.partitions.of_partition = {kAllCells};
    q.scheduler.slurm = SlurmSpec{};
    ClusterQueueSpec all{.name = "all", .cohort = ""};
    all.flavors = {{"pool", 12, {}, {}}};
    q.scheduler.kueue = KueueSpec{{}, {}, {all}};
    for (int k = 0; k < 60; ++k)
      q.list.jobs.push_back(history_job(k * 7 % 50, 10 + k * 13 % 40, 1 + k % 9));
    std::vector<Holding> holdings;
    RunOptions options;
    options.holdings = &holdings;
    const QueueRun run = run_queue(q, q.list, 0, q.list.jobs.size(), options);
    double gpu_seconds = 0;
    for (const Holding& h : holdings)
      gpu_seconds += to_seconds(h.end - h.begin).count() * h.part.gpus;
    CHECK(gpu_seconds == Approx(run.gpu_seconds));
    const QueueSeries series = queue_series(q.list, run, {holdings, q.groups}, 40);
    const double mean =
        std::accumulate(series.in_use.begin(), series.in_use.end(), 0.0) / 40 / series.gpus;
    CHECK(mean == Approx(run.utilization).epsilon(1e-6));
  }
}

TEST_CASE("nodes count on through groups of one pool") {
  const std::vector<NodeGroup> groups{{2, 4, 0}, {1, 4, 0}, {1, 8, 0}};
  const std::vector<std::string> names{"a", "a", "b"};
  CHECK(node_names(groups, names) == std::vector<std::string>{"a-0", "a-1", "a-2", "b-0"});
}
