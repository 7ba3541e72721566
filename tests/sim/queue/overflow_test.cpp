#include "sim/queue/backfill/overflow.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "sim/queue/backfill/backfill.h"
#include "sim/queue/trace.h"

using namespace reckon;

namespace {

SimTime second(double s) { return SimTime{} + to_clock(Seconds{s}); }
SimDuration seconds(double s) { return to_clock(Seconds{s}); }
double from_start(SimTime at) { return std::round(to_seconds(at - SimTime{}).count() * 1e6) / 1e6; }

/// Two nodes of 8, asked for after 100 s, there after 10, given back after 20.
OverflowSpec two_nodes() {
  OverflowSpec spec;
  spec.nodes = 2;
  spec.wait = Seconds{100};
  spec.provisioning_time = Seconds{10};
  spec.scale_down_unneeded_time = Seconds{20};
  return spec;
}

QueueRun overflow_run(const std::vector<JobRequest>& jobs, OverflowNodes* overflow,
                      int own_nodes = 2) {
  RunOptions options;
  options.overflow = overflow;
  const std::vector<NodeGroup> groups{{own_nodes, 8, 0}};
  return run_easy_backfill(jobs, groups, 0, jobs.size(), options);
}

}  // namespace

TEST_CASE("a job that waited too long runs in the cloud when its nodes are there") {
  // Job 0 holds both nodes for 1,000 s. Job 1 waits until 101 and has two nodes from 111 to 161;
  // they idle and take job 2, which is due at 170, at once. Job 3 is due at 205, when one of them
  // is free, and runs until 215; job 4 asks for 24 GPUs, which nobody has.
  const std::vector<JobRequest> jobs{
      recorded_job(second(0), seconds(1000), 16), recorded_job(second(1), seconds(50), 9),
      recorded_job(second(70), seconds(100), 8), recorded_job(second(105), seconds(10), 4),
      recorded_job(second(106), seconds(10), 24)};
  OverflowNodes overflow(two_nodes(), 1, 0);
  const QueueRun run = overflow_run(jobs, &overflow);
  CHECK(from_start(*run.jobs[1].start) == 111);
  CHECK(from_start(*run.jobs[1].end) == 161);
  CHECK(from_start(*run.jobs[2].start) == 170);
  CHECK(from_start(*run.jobs[2].end) == 270);
  CHECK(run.jobs[1].overflowed);
  CHECK_FALSE(run.jobs[0].overflowed);
  // The other node idles from 161 and is given back at 181: job 3 buys a new one at 205.
  CHECK(from_start(*run.jobs[3].start) == 215);
  CHECK(run.never == std::vector<std::size_t>{4});
  CHECK(run.gpu_seconds == Approx(16 * 1000));  // of the own nodes
  const OverflowUse use = overflow.use();
  CHECK(use.jobs == 3);
  CHECK(use.gpu_seconds == Approx(9 * 50 + 8 * 100 + 4 * 10));
  // One from 111 to 290, one from 111 to 181, one from 215 to 245.
  CHECK(use.node_seconds == Approx(179 + 70 + 30));
}

TEST_CASE("who finds no room in the cloud goes when there is some, or starts at home before") {
  const std::vector<JobRequest> jobs{
      recorded_job(second(0), seconds(400), 16), recorded_job(second(1), seconds(100), 16),
      recorded_job(second(2), seconds(50), 16), recorded_job(second(250), seconds(30), 8)};
  OverflowNodes overflow(two_nodes(), 1, 0);
  const QueueRun run = overflow_run(jobs, &overflow);
  CHECK(from_start(*run.jobs[1].start) == 111);
  // Due at 102 while job 1 has both nodes: at 211, when it ends, on the same nodes.
  CHECK(from_start(*run.jobs[2].start) == 211);
  // Due at 350.
  CHECK(from_start(*run.jobs[3].start) == 360);
  OverflowNodes later(two_nodes(), 1, 0);
  std::vector<JobRequest> sooner = jobs;
  std::get<FixedTime>(sooner[0].work).time = seconds(300);
  CHECK(from_start(*overflow_run(sooner, &later).jobs[3].start) == 300);  // at home
}

TEST_CASE("who does not fit the own nodes goes to the cloud without waiting") {
  const std::vector<JobRequest> jobs{recorded_job(second(5), seconds(50), 16)};
  OverflowNodes overflow(two_nodes(), 1, 0);
  CHECK(from_start(*overflow_run(jobs, &overflow, 1).jobs[0].start) == 15);
}

TEST_CASE("without an overflow the queue is as before, and one that nobody needs changes nothing") {
  std::vector<JobRequest> jobs;
  for (int k = 0; k < 30; ++k)
    jobs.push_back(recorded_job(second(k * 20), seconds(30 + k % 7), 1 + k % 8));
  OverflowSpec patient = two_nodes();
  patient.wait = Seconds{1e6};
  OverflowNodes overflow(patient, 1, 0);
  const QueueRun with = overflow_run(jobs, &overflow), without = overflow_run(jobs, nullptr);
  for (std::size_t k = 0; k < jobs.size(); ++k) CHECK(with.jobs[k].start == without.jobs[k].start);
  CHECK(overflow.use().node_seconds == 0);
}

TEST_CASE("a reclaimed node costs a job its work since the last checkpoint, and another comes") {
  OverflowSpec spec = two_nodes();
  spec.mean_time_to_reclaim = Seconds{50};
  const auto stay = [&](std::optional<Seconds> checkpoint) {
    spec.checkpoint = checkpoint;
    OverflowNodes overflow(spec, 7, 0);
    const auto out = overflow.run(0, 8, seconds(200), second(0));
    return std::pair(*out, overflow.use());
  };
  const auto [all_kept, use] = stay(Seconds{0});
  REQUIRE(all_kept.reclaims > 0);
  // Nothing is lost: the work and, for each node, the wait for it.
  CHECK(from_start(all_kept.end) == Approx(200 + 10 * (1 + all_kept.reclaims)));
  CHECK(use.node_seconds == Approx(200 + 20).epsilon(0.1));  // and up to 20 s idle
  const auto [some_kept, more] = stay(Seconds{30});
  CHECK(some_kept.end > all_kept.end);
  CHECK(more.node_seconds > use.node_seconds);
}

TEST_CASE("the time that spot nodes need follows the exponential law") {
  // A job of length w that starts again at each reclaim: E = (exp(w / m) - 1) (m + p), and p for
  // the first node, where m is the mean time to a reclaim and p the wait for a node [Ross 2014,
  // Introduction to Probability Models, Sec. 7: renewal rewards].
  OverflowSpec spec = two_nodes();
  spec.mean_time_to_reclaim = Seconds{100};
  constexpr int kRuns = 20'000;
  const double w = 120, m = 100, p = 10;
  double sum = 0;
  for (std::uint32_t k = 0; k < kRuns; ++k) {
    OverflowNodes overflow(spec, 3, k);
    sum += from_start(overflow.run(0, 8, seconds(w), second(0))->end);
  }
  CHECK(sum / kRuns == Approx((std::exp(w / m) - 1) * (m + p) + p).epsilon(0.02));
}

TEST_CASE("the cloud never has more nodes than it may, and every job ends") {
  CHECK(rc::check([] {
    OverflowSpec spec = two_nodes();
    spec.nodes = *rc::gen::inRange(1, 5);
    spec.wait = Seconds{double(*rc::gen::inRange(0, 60))};
    if (*rc::gen::inRange(0, 2) == 1) spec.mean_time_to_reclaim = Seconds{200};
    spec.checkpoint = Seconds{5};
    std::vector<JobRequest> jobs;
    for (int k = *rc::gen::inRange(1, 40); k > 0; --k)
      jobs.push_back(recorded_job(second(*rc::gen::inRange(0, 300)),
                                  seconds(*rc::gen::inRange(1, 100)), *rc::gen::inRange(1, 20)));
    OverflowNodes overflow(spec, 11, 0);
    const QueueRun run = overflow_run(jobs, &overflow, 1);
    std::int64_t sent = 0;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const bool never = std::count(run.never.begin(), run.never.end(), j) > 0;
      const JobTimes& times = run.jobs[j];
      RC_ASSERT(never == (jobs[j].gpus() > 8 && jobs[j].gpus() > 8 * spec.nodes));
      RC_ASSERT(never != times.end.has_value());
      sent += times.overflowed;
      if (!times.overflowed || spec.mean_time_to_reclaim) continue;
      int nodes = 0;  // held when it starts
      for (std::size_t k = 0; k < jobs.size(); ++k)
        if (run.jobs[k].overflowed && *run.jobs[k].start <= *times.start &&
            *times.start < *run.jobs[k].end)
          nodes += (jobs[k].gpus() + 7) / 8;
      RC_ASSERT(nodes <= spec.nodes);
    }
    const OverflowUse use = overflow.use();
    RC_ASSERT(use.jobs == sent);
    RC_ASSERT(use.gpu_seconds <= use.node_seconds * 8 + 1e-6 || spec.mean_time_to_reclaim);
  }));
}
