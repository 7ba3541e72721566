#include <benchmark/benchmark.h>

#include <chrono>
#include <ctime>
#include <vector>

#include "sim/base/random.h"
#include "sim/cluster/event_queue.h"
#include "sim/cluster/life/life.h"
#include "support/plans.h"

// The life of a cluster against a bare heap, and the lives that a forecast needs.
namespace {
using namespace reckon;
using namespace std::chrono_literals;

/// A month of training on 100 spot nodes that are taken back every 120 h on average: some 600
/// reclaims.
struct SpotMonth {
  Plan plan;
  JobPace pace;
};

SpotMonth spot_month() {
  constexpr int kNodes = 100;
  SpotMonth m;
  m.plan.pools.push_back(test::round_pool("spot", Role::worker, kNodes, 1));
  PlannedPool& pool = m.plan.pools.front();
  pool.pricing = CapacityType::spot;
  pool.provisioning = Fact<Seconds>{210s, 180s, 240s, SourceId::user};
  PlannedWorkload job;
  job.strategy.kind = StrategyKind::multi_worker_mirrored;
  job.strategy.workers = kNodes;
  job.strategy.accelerators_per_worker = 1;
  m.plan.jobs.push_back(job);
  test::set_rules(m.plan);
  m.plan.job_start.image_pull = Fact<Seconds>{60s};
  m.plan.job_start.framework_start = Fact<Seconds>{20s};
  m.plan.reclaim.law = TraceReclaim{};
  m.plan.reclaim.notice = 30s;
  m.plan.reclaim.trace_length = 24h * 30;
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    RandomStream stream(7, 0, Purpose{"bench_trace"}, node);
    std::vector<Seconds> times;
    for (Seconds t = 120h * stream.exponential(); t < m.plan.reclaim.trace_length;
         t += 120h * stream.exponential()) {
      times.push_back(t);
    }
    m.plan.reclaim.trace.push_back(std::move(times));
  }
  m.pace.steps = 4'800'000;  // of 0.5 s: with what is lost, about a month
  m.pace.step_by_workers.assign(kNodes + 1, Seconds{0.5});
  m.pace.checkpoint_save = 5s;
  m.pace.checkpoint_restore = 10s;
  m.pace.checkpoint_interval = 20min;
  return m;
}

/// One forecast's worth of lives.
void thousand_spot_months(benchmark::State& state) {
  const SpotMonth m = spot_month();
  double reclaims = 0, events = 0, lives = 0;
  for (auto _ : state) {
    for (std::uint32_t k = 0; k < 1000; ++k) {
      const LifeResult life =
          simulate_life(m.plan, request_of(m.plan.jobs.front(), m.pace), {.replication = k});
      reclaims += double(life.interruptions[std::size_t(Interruption::preemption)]);
      events += double(life.events);
      ++lives;
    }
  }
  state.counters["reclaims_per_life"] = reclaims / lives;
  state.counters["events_per_life"] = events / lives;
}
BENCHMARK(thousand_spot_months)->Unit(benchmark::kMillisecond);

/// CPU time of this thread: what other programs do at the same time does not count.
double cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}

/// "Hold" operations of a bare 4-ary heap: take the earliest, put one back later. Nanoseconds each.
double bare_heap_ns(std::size_t size, std::int64_t operations) {
  EventQueue queue;
  RandomStream stream(1, 0, Purpose{"bench_heap"}, 0);
  std::vector<std::int64_t> gaps(4096);
  for (std::int64_t& gap : gaps) gap = 1 + std::int64_t(1e12 * stream.exponential());
  for (std::size_t i = 0; i < size; ++i) {
    queue.push(SimTime{SimDuration{gaps[i % gaps.size()]}}, EventKind::ready, 0, 0);
  }
  Event event;
  const double begin = cpu_ns();
  for (std::int64_t k = 0; k < operations; ++k) {
    queue.take(event);
    const SimDuration gap{gaps[static_cast<std::size_t>(k) % gaps.size()]};
    queue.push(event.at + gap, EventKind::ready, 0, 0);
  }
  const double spent = cpu_ns() - begin;
  benchmark::DoNotOptimize(event);
  return spent / double(operations);
}

double event_ns(const SpotMonth& m) {
  double events = 0;
  const double begin = cpu_ns();
  for (std::uint32_t k = 0; k < 20; ++k) {
    events += double(
        simulate_life(m.plan, request_of(m.plan.jobs.front(), m.pace), {.replication = k}).events);
  }
  return (cpu_ns() - begin) / events;
}

/// An event of the spot month, with all that it makes happen, in hold operations of a bare heap
/// with as many entries (each node waits for one event). `ratio` is the event loop's; drawing
/// provisioning delays from their distribution comes on top in `ratio_with_draws`.
void event_against_bare_heap(benchmark::State& state) {
  const SpotMonth drawn = spot_month();
  SpotMonth constant = drawn;
  constant.plan.pools.front().provisioning = Fact<Seconds>{210s};
  double loop = 0, with_draws = 0, heap = 0, rounds = 0;
  for (auto _ : state) {
    loop += event_ns(constant);
    with_draws += event_ns(drawn);
    heap += bare_heap_ns(100, 100'000);
    ++rounds;
  }
  state.counters["event_ns"] = loop / rounds;
  state.counters["heap_ns"] = heap / rounds;
  state.counters["ratio"] = loop / heap;
  state.counters["ratio_with_draws"] = with_draws / heap;
}
BENCHMARK(event_against_bare_heap)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
