#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "sim/base/mapped_file.h"
#include "sim/base/random.h"
#include "sim/queue/easy_backfill.h"
#include "sim/queue/fifo.h"
#include "sim/queue/load.h"
#include "sim/queue/openb_csv.h"

// Shared clusters: pods onto Alibaba's 1,213 nodes, and queues of 10^3 to 10^6 jobs.
namespace {
using namespace reckon;

const std::string kOpenb = RECKON_SOURCE_DIR "/scenarios/traces/openb/";

void openb(benchmark::State& state, SchedulingPolicy policy) {
  const MappedFile node_list(kOpenb + "openb_node_list_gpu_node.csv");
  const MappedFile pod_list(kOpenb + "openb_pod_list_default.csv");
  const auto nodes = read_openb_nodes("nodes", node_list.bytes());
  const auto pods = read_openb_pods("pods", pod_list.bytes());
  std::int64_t placed = 0;
  for (auto _ : state) placed += run_load(*nodes, *pods, policy, 1.3, 42).placed;
  state.counters["pods"] = benchmark::Counter(double(placed), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(openb, fgd, SchedulingPolicy::fgd)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(openb, best_fit, SchedulingPolicy::best_fit)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(openb, gpu_packing, SchedulingPolicy::gpu_packing)->Unit(benchmark::kMillisecond);

/// Jobs of 1 to 64 GPUs, an hour on average, at 90 % use of nodes with 8 GPUs.
std::vector<JobRequest> queue_of(std::size_t jobs, int nodes) {
  constexpr double kHour = 3600, kUse = 0.9, kGpusOfJob = 18.14;  // mean of the sizes below
  constexpr std::array kSizes{1, 2, 4, 8, 16, 32, 64};
  RandomStream stream(5, 0, Purpose{"queue_bench"}, 0);
  const double between = kHour * kGpusOfJob / (kUse * nodes * 8);
  std::vector<JobRequest> out;
  double now = 0;
  for (std::size_t k = 0; k < jobs; ++k) {
    now += stream.exponential() * between;
    const auto size = static_cast<std::size_t>(stream.uniform() * double(kSizes.size()));
    out.push_back(recorded_job(SimTime{} + to_clock(Seconds{now}),
                               to_clock(Seconds{stream.exponential() * kHour}), kSizes[size]));
  }
  return out;
}

void queue(benchmark::State& state, decltype(run_fifo)& run) {
  const auto jobs = queue_of(static_cast<std::size_t>(state.range(0)), int(state.range(1)));
  const std::vector<NodeGroup> groups{{int(state.range(1)), 8}};
  for (auto _ : state) benchmark::DoNotOptimize(run(jobs, groups, 0, jobs.size()).waiting.mean);
  state.counters["jobs"] =
      benchmark::Counter(double(jobs.size()), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(queue, fifo, run_fifo)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 100'000, 1'000'000}, {100, 1000, 10'000}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(queue, easy_backfill, run_easy_backfill)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 100'000, 1'000'000}, {100, 1000, 10'000}})
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
