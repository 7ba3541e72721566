#include "sim/queue/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/limits.h"
#include "sim/base/parallel.h"
#include "sim/base/unit_text.h"
#include "sim/queue/easy_backfill.h"

namespace reckon {
namespace {

TraceResult of_queue(const QueueRun& run, int gpus) {
  TraceResult out;
  out.jobs = static_cast<std::int64_t>(run.jobs.size());
  out.never = static_cast<std::int64_t>(run.never.size());
  for (const JobTimes& job : run.jobs) out.started += job.start ? 1 : 0;
  out.gpus = gpus;
  out.measured = run.completion.count;
  out.waiting = run.waiting;
  out.completion = run.completion;
  out.makespan_seconds = run.makespan_seconds;
  out.utilization = run.utilization;
  return out;
}

std::size_t measured_jobs(const TraceQuestion& question, std::size_t behind) {
  return question.window ? static_cast<std::size_t>(*question.window) : behind;
}

struct OneReplication {
  const TraceQuestion& question;
  std::uint64_t seed;

  TraceResult operator()(const LoadQuestion& work) const {
    LoadRun run = run_load(work.nodes, work.pods, question.policy, work.load, seed);
    TraceResult out;
    out.jobs = run.arrived;
    out.started = run.placed;
    out.gpus = double(run.gpu_milli) / kWholeGpu;
    out.curve = std::move(run.curve);
    out.allocation = double(run.gpu_milli_used) / double(run.gpu_milli);
    out.fragmentation = run.fragmentation_percent / 100;
    return out;
  }
  TraceResult operator()(const GavelQuestion& work) const {
    const std::size_t first = work.list.running;
    int gpus = 0;
    for (const GavelKind& kind : work.kinds) gpus += kind.gpus;
    return of_queue(run_gavel(work.list.jobs, work.kinds, work.rules, first,
                              measured_jobs(question, work.list.jobs.size() - first)),
                    gpus);
  }
  TraceResult operator()(const FifoQuestion& work) const {
    int gpus = 0;
    for (const NodeGroup& group : work.groups) gpus += group.nodes * group.gpus;
    const auto run =
        question.policy == SchedulingPolicy::easy_backfill ? run_easy_backfill : run_fifo;
    return of_queue(run(work.jobs, work.groups, work.running,
                        measured_jobs(question, work.jobs.size() - work.running)),
                    gpus);
  }
};

void add(std::vector<double>& to, const std::vector<double>& from) {
  for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
}
void divide(std::vector<double>& values, int by) {
  for (double& v : values) v /= by;
}

/// Of a load: a look at each node for each pod, and the scores of those that changed.
void check_work(const TraceQuestion& question, int replications) {
  constexpr double kSecondsALook = 3e-9, kSecondsAPod = 5e-5;
  const auto* load = std::get_if<LoadQuestion>(&question.work);
  if (load == nullptr) return;
  const double pods = double(load->pods.size()) * std::max(1.0, load->load);
  const double seconds =
      replications * pods * (kSecondsAPod + kSecondsALook * double(load->nodes.size()));
  if (seconds <= work_limits().cpu_seconds) return;
  throw TooMuchWork(
      fmt::format("{} replications of {} pods on {} nodes take about {} of CPU time",
                  format_count(replications), format_count(pods),
                  format_count(double(load->nodes.size())), format_duration(Seconds{seconds})),
      hint_of_time("fewer replications", seconds));
}

}  // namespace

TraceResult simulate_trace(const TraceQuestion& question, int replications, int threads) {
  RECKON_CHECK(replications >= 1);
  check_work(question, replications);
  // Only a load draws anything: of the others one replication is all.
  const bool draws = std::holds_alternative<LoadQuestion>(question.work);
  const int runs = draws ? replications : 1;
  std::vector<TraceResult> results(static_cast<std::size_t>(runs));
  parallel_for(results.size(), threads, [&](std::size_t k) {
    results[k] = std::visit(OneReplication{question, question.seed + k}, question.work);
  });
  TraceResult out = results.front();
  for (std::size_t k = 1; k < results.size(); ++k) {
    add(out.curve->gpu_percent, results[k].curve->gpu_percent);
    add(out.curve->fragmentation_percent, results[k].curve->fragmentation_percent);
    *out.allocation += *results[k].allocation;
    *out.fragmentation += *results[k].fragmentation;
  }
  if (runs > 1) {
    divide(out.curve->gpu_percent, runs);
    divide(out.curve->fragmentation_percent, runs);
    *out.allocation /= runs;
    *out.fragmentation /= runs;
  }
  out.scenario = question.scenario;
  out.policy = question.policy;
  out.seed = question.seed;
  out.replications = runs;
  out.warnings = question.warnings;
  return out;
}

namespace {

std::optional<double> picked(const std::optional<TimeStatistics>& times, Statistic statistic) {
  if (!times || times->count == 0) return std::nullopt;
  switch (statistic) {
    case Statistic::none:
    case Statistic::mean:
      return times->mean;
    case Statistic::p50:
      return times->p50;
    case Statistic::p95:
      return times->p95;
    case Statistic::p5:
    case Statistic::p99:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> value_of(const Expectation& expectation, const TraceResult& result) {
  switch (expectation.metric) {
    case Metric::wait:
      return picked(result.waiting, expectation.statistic);
    case Metric::jct:
      return picked(result.completion, expectation.statistic);
    case Metric::makespan:
      return result.makespan_seconds;
    case Metric::utilization:
      return result.utilization;
    case Metric::allocation:
      return result.allocation;
    case Metric::fragmentation:
      return result.fragmentation;
    default:
      return std::nullopt;
  }
}

}  // namespace reckon
