#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <array>
#include <string>
#include <vector>

#include "sim/base/mapped_file.h"
#include "sim/base/random.h"
#include "sim/queue/lists/openb_csv.h"
#include "sim/queue/packing/load.h"
#include "sim/queue/queue_question.h"
#include "sim/queue/snapshot/start_forecast.h"

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

/// Jobs of 1 to 64 GPUs, an hour on average, that ask for `use` of nodes with 8 GPUs, of 20 teams
/// with 5 users each.
JobList queue_of(std::size_t jobs, int nodes, double use) {
  constexpr double kHour = 3600, kGpusOfJob = 18.14;  // mean of the sizes below
  constexpr std::array kSizes{1, 2, 4, 8, 16, 32, 64};
  constexpr int kTeams = 20, kUsers = 5;
  RandomStream stream(5, 0, Purpose{"queue_bench"}, 0), owners(5, 0, Purpose{"queue_owners"}, 0);
  const double between = kHour * kGpusOfJob / (use * nodes * 8);
  JobList out;
  double now = 0;
  for (std::size_t k = 0; k < jobs; ++k) {
    now += stream.exponential() * between;
    const auto size = static_cast<std::size_t>(stream.uniform() * double(kSizes.size()));
    out.jobs.push_back(recorded_job(SimTime{} + to_clock(Seconds{now}),
                                    to_clock(Seconds{stream.exponential() * kHour}), kSizes[size]));
    const int user = static_cast<int>(owners.uniform() * kTeams * kUsers);
    out.jobs.back().owner.user = out.names.users.number(std::to_string(user));
    out.jobs.back().owner.team = out.names.teams.number(std::to_string(user / kUsers));
  }
  return out;
}

void queue_at(benchmark::State& state, SchedulingPolicy policy, double use) {
  const JobList list = queue_of(static_cast<std::size_t>(state.range(0)), int(state.range(1)), use);
  QueueQuestion question;
  question.scheduler.policy = policy;
  question.groups = {{int(state.range(1)), 8, 0}};
  question.pools = {"pool"};
  question.partitions.of_partition = {kAllCells};
  question.scheduler.slurm = SlurmSpec{.weight_age = 1000, .weight_fairshare = 10'000};
  ClusterQueueSpec all{.name = "all", .cohort = ""};
  all.flavors = {{"pool", int(state.range(1)) * 8, {}, {}}};
  question.scheduler.kueue = KueueSpec{{}, {}, {all}};
  for (auto _ : state)
    benchmark::DoNotOptimize(run_queue(question, list, 0, list.jobs.size()).waiting.mean);
  state.counters["jobs"] =
      benchmark::Counter(double(list.jobs.size()), benchmark::Counter::kIsIterationInvariantRate);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  state.counters["peak_MB"] = double(used.ru_maxrss) / 1024;  // of all benchmarks so far
}
constexpr double kUsual = 0.9, kOverload = 1.5;

void queue(benchmark::State& state, SchedulingPolicy policy) { queue_at(state, policy, kUsual); }
/// Half as much again as the nodes can do: the queue grows to the end.
void overload(benchmark::State& state, SchedulingPolicy policy) {
  queue_at(state, policy, kOverload);
}

/// A user's question: 100 jobs run or wait on 16 nodes, 1,000 replications of when one more starts.
void submission(benchmark::State& state) {
  ClusterSnapshot snapshot;
  snapshot.at = 1'795'000'000;
  for (int n = 0; n < 16; ++n)
    snapshot.nodes.push_back({.name = std::to_string(n), .gpus = 8, .queues = {"batch"}});
  for (int k = 0; k < 100; ++k) {
    SnapshotJob job{.id = std::to_string(k), .queue = "batch", .gpus = k < 32 ? 4 : 1 << k % 7};
    job.submit = snapshot.at - 7200 + k;
    job.priority = 1000 - k;
    job.limit = Seconds{3600.0 * (2 + k % 24)};
    if (k < 32) {
      job.start = job.submit;
      job.on = {{std::to_string(k / 2), 4}};
    }
    snapshot.jobs.push_back(std::move(job));
  }
  Submission mine;
  mine.gpus = 16;
  mine.queue = "batch";
  mine.limit = Seconds{12 * 3600.0};
  mine.times = {Seconds{8 * 3600.0}};
  for (auto _ : state)
    benchmark::DoNotOptimize(forecast_start(snapshot, mine, 1000, 1, 1).start.p50);
}
BENCHMARK(submission)->Unit(benchmark::kMillisecond);

BENCHMARK_CAPTURE(overload, fifo, SchedulingPolicy::fifo)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 66'000, 100'000, 1'000'000}, {100, 10'000}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(overload, easy_backfill, SchedulingPolicy::easy_backfill)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 66'000, 100'000, 1'000'000}, {100, 10'000}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(overload, slurm_fair_share, SchedulingPolicy::slurm)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 66'000, 100'000, 1'000'000}, {100, 10'000}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(overload, kueue, SchedulingPolicy::kueue)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 66'000, 100'000, 1'000'000}, {100, 10'000}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(queue, fifo, SchedulingPolicy::fifo)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 100'000, 1'000'000}, {100, 1000, 10'000}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(queue, easy_backfill, SchedulingPolicy::easy_backfill)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 100'000, 1'000'000}, {100, 1000, 10'000}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(queue, slurm_fair_share, SchedulingPolicy::slurm)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 100'000, 1'000'000}, {100, 1000, 10'000}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(queue, kueue, SchedulingPolicy::kueue)
    ->ArgNames({"jobs", "nodes"})
    ->ArgsProduct({{1000, 10'000, 100'000, 1'000'000}, {100, 1000, 10'000}})
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
