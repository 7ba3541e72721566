#include "sim/queue/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/limits.h"
#include "sim/base/parallel.h"
#include "sim/base/unit_text.h"
#include "sim/queue/backfill/overflow.h"
#include "sim/queue/kueue/admission_checks.h"
#include "sim/queue/queue_history.h"
#include "sim/queue/trace_means.h"

namespace reckon {
namespace {

TraceResult of_queue(const QueueRun& run, double gpus) {
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

/// Of longer lists what was free is not added up.
constexpr std::size_t kMostJobsOfSeries = 200'000;

void warn_of_starved(const KarpenterAnswer& made, std::vector<std::string>& warnings) {
  if (made.hopeless > 0)
    warnings.push_back(
        fmt::format("{} of the jobs never ended: each was evicted {} times in a row before it "
                    "could end or save "
                    "save a checkpoint. Give them `doNotDisrupt: true` or a shorter `checkpoint`",
                    made.hopeless, kMostInVain));
  if (made.starved > made.hopeless)
    warnings.push_back(
        fmt::format("{} of the jobs still wait for nodes when nothing runs any more: the limits "
                    "of the NodePools hold fewer pods than they have together",
                    made.starved - made.hopeless));
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
    const QueueRun run = run_gavel(work.list.jobs, work.kinds, work.rules, first,
                                   measured_jobs(question, work.list.jobs.size() - first));
    TraceResult out = of_queue(run, gpus);
    if (work.rules.policy != SchedulingPolicy::fifo_perf) out.preemptions = double(run.preemptions);
    return out;
  }
  TraceResult operator()(const QueueQuestion& work) const {
    // What was free and unusable takes as long to add up as the queue: once is enough.
    const bool first = seed == question.seed && work.list.jobs.size() <= kMostJobsOfSeries;
    const bool charged =
        work.overflow_rate || std::ranges::any_of(work.rates, [](const NodeRates& r) {
          return r.usd_per_second || r.watts;
        });
    const QueueRecord record = record_of(work, first || charged);
    TraceResult out =
        of_queue(record.run, work.karpenter ? record.most_gpus : whole_gpus_of(work.groups));
    out.karpenter = record.karpenter;
    if (record.karpenter) warn_of_starved(*record.karpenter, out.warnings);
    QueueAnswers answers = answers_of(record.run, record.list);
    out.slowdown = answers.slowdown;
    out.teams = std::move(answers.teams);
    out.fairness = answers.fairness;
    out.goodput = answers.goodput;
    out.allocation = out.utilization;
    out.preemptions = double(record.run.preemptions);
    out.usd_rate = question.usd_rate;
    out.currency = question.currency;
    if (first) out.fragmentation = fragmentation_of(record, occupancy_of(work, record));
    set_charges(record, out);
    if (record.overflow) {
      out.overflow_jobs = double(record.overflow->jobs);
      out.overflow_reclaims = double(record.overflow->reclaims);
      out.overflow_node_hours = record.overflow->node_seconds / 3600;
      if (work.overflow_rate)
        out.overflow_usd = record.overflow->node_seconds * *work.overflow_rate;
    }
    if (auto note = note_of_never(work, record.list, record.run.never))
      out.warnings.push_back(std::move(*note));
    if (record.run.cancelled > 0)
      out.warnings.push_back(
          fmt::format("{} of the jobs that started were cancelled by preemption, and have no end",
                      record.run.cancelled));
    if (record.run.rejected > 0)
      out.warnings.push_back(
          fmt::format("{} of the jobs were rejected by an admission check, and never started",
                      record.run.rejected));
    if (auto note = note_of_accounts(work, record.list)) out.warnings.push_back(std::move(*note));
    return out;
  }

  static std::optional<double> fragmentation_of(const QueueRecord& record,
                                                const Occupancy& occupancy) {
    constexpr std::size_t kSpans = 200;
    const QueueSeries series = queue_series(record.list, record.run, occupancy, kSpans);
    double stranded = 0, free = 0;
    for (std::size_t k = 0; k < series.stranded.size(); ++k) {
      stranded += series.stranded[k];
      free += series.there[k] - series.in_use[k];
    }
    return free > 0 ? std::optional(stranded / free) : std::nullopt;
  }

  /// A team's is what its jobs held.
  static void set_charges(const QueueRecord& record, TraceResult& out) {
    const QueueCharges& charges = record.charges;
    if (charges.priced) out.cost_usd = charges.all.usd;
    if (charges.powered) out.energy_joules = charges.all.joules;
    const auto& names = record.list.names.teams.names();
    std::vector<Charge> of_team(names.size());
    for (std::size_t j = 0; j < charges.of_job.size(); ++j) {
      const std::int32_t team = record.list.jobs[j].owner.team;
      if (team < 0) continue;
      of_team[static_cast<std::size_t>(team)].usd += charges.of_job[j].usd;
      of_team[static_cast<std::size_t>(team)].joules += charges.of_job[j].joules;
    }
    for (TeamAnswer& team : out.teams) {
      const auto at = static_cast<std::size_t>(std::ranges::find(names, team.name) - names.begin());
      if (charges.priced) team.usd = of_team[at].usd;
      if (charges.powered) team.joules = of_team[at].joules;
    }
  }

  void record_karpenter(const QueueQuestion& work, const RunOptions& options,
                        QueueRecord& record) const {
    const std::size_t first = std::min(first_measured(work, record.list), record.list.jobs.size());
    KarpenterRun run =
        run_karpenter(record.list.jobs, *work.karpenter, *work.scheduler.kubernetes, first,
                      measured_jobs(question, record.list.jobs.size() - first), options);
    record.charges = charges_of(run, *work.karpenter);
    record.karpenter = answer_of(run, *work.karpenter);
    record.most_gpus = run.most_gpus;
    record.nodes = rows_of(run, *work.karpenter);
    record.spans = std::move(run.spans);
    record.holdings = std::move(run.holdings);
    record.run = std::move(run.run);
  }

  QueueRecord record_of(const QueueQuestion& work, bool with_holdings = false) const {
    // Drawn jobs of replication k are of its own streams, those of the seed asked for.
    const auto replication = static_cast<std::uint32_t>(seed - question.seed);
    QueueRecord record;
    record.list = jobs_of(work, question.seed, replication);
    RunOptions options;
    options.seed = question.seed;
    options.replication = replication;
    std::optional<OverflowNodes> overflow;
    if (work.scheduler.overflow) {
      overflow.emplace(*work.scheduler.overflow, question.seed, replication);
      options.overflow = &*overflow;
    }
    if (with_holdings) options.holdings = &record.holdings;
    if (work.karpenter) {
      record_karpenter(work, options, record);
      return record;
    }
    const std::size_t first = std::min(first_measured(work, record.list), record.list.jobs.size());
    record.run = run_queue(work, record.list, first,
                           measured_jobs(question, record.list.jobs.size() - first), options);
    if (with_holdings)
      record.charges = charges_of(record.run, record.holdings, work.groups, work.rates);
    if (!overflow) return record;
    record.overflow = overflow->use();
    if (!work.overflow_rate || record.charges.of_job.empty()) return record;
    record.charges.all.usd += record.overflow->node_seconds * *work.overflow_rate;
    for (const auto& [job, node_seconds] : record.overflow->of_job)
      record.charges.of_job[job].usd += node_seconds * *work.overflow_rate;
    return record;
  }
};

/// Of drawn jobs: about what a job costs in time and memory (docs/models/queue.md).
void check_drawn(const DrawnJobs& drawn, int replications, int threads) {
  constexpr double kSecondsADrawnJob = 3e-5, kBytesADrawnJob = 700;
  const double jobs = expected_jobs(drawn.arrivals);
  const double seconds = replications * jobs * kSecondsADrawnJob;
  const double bytes = jobs * kBytesADrawnJob * std::clamp(threads, 1, replications);
  const std::string what = fmt::format("{} replications of {} jobs", format_count(replications),
                                       format_count(std::round(jobs)));
  if (bytes > work_limits().bytes)
    throw TooMuchWork(fmt::format("{} take about {}", what, format_bytes(Bytes{bytes})),
                      hint_of_memory("a shorter arrivals.period", bytes));
  if (seconds > work_limits().cpu_seconds)
    throw TooMuchWork(
        fmt::format("{} take about {} of CPU time", what, format_duration(Seconds{seconds})),
        hint_of_time("fewer replications or a shorter arrivals.period", seconds));
}

/// Of a load: a look at each node for each pod, and the scores of those that changed.
void check_work(const TraceQuestion& question, int replications, int threads) {
  constexpr double kSecondsALook = 3e-9, kSecondsAPod = 5e-5;
  if (const auto* queue = std::get_if<QueueQuestion>(&question.work); queue && queue->drawn)
    return check_drawn(*queue->drawn, replications, threads);
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
  check_work(question, replications, threads);
  // Recorded jobs draw nothing: of them one replication is all, but where spot nodes go.
  const auto* queue = std::get_if<QueueQuestion>(&question.work);
  const bool reclaims = queue != nullptr && queue->scheduler.overflow &&
                        queue->scheduler.overflow->mean_time_to_reclaim;
  const bool checks =
      queue != nullptr && queue->scheduler.kueue && draws_checks(*queue->scheduler.kueue);
  const bool draws = std::holds_alternative<LoadQuestion>(question.work) || reclaims || checks ||
                     (queue != nullptr && (queue->drawn || queue->karpenter));
  const int runs = draws ? replications : 1;
  std::vector<TraceResult> results(static_cast<std::size_t>(runs));
  parallel_for(results.size(), threads, [&](std::size_t k) {
    results[k] = std::visit(OneReplication{question, question.seed + k}, question.work);
  });
  TraceResult out = results.front();
  if (runs > 1) take_mean(out, results);
  out.scenario = question.scenario;
  out.policy = question.policy;
  out.seed = question.seed;
  out.replications = runs;
  out.warnings.insert(out.warnings.begin(), question.warnings.begin(), question.warnings.end());
  return out;
}

Occupancy occupancy_of(const QueueQuestion& question, const QueueRecord& record) {
  if (!record.nodes) return {record.holdings, question.groups, {}, {}};
  return {record.nodes->holdings, record.nodes->groups, record.nodes->stays, record.spans};
}

std::vector<std::string> node_names(const QueueQuestion& question, const QueueRecord& record) {
  if (record.nodes) return node_names(record.nodes->groups, record.nodes->names);
  return node_names(question.groups, question.group_names);
}

std::optional<QueueRecord> record_queue(const TraceQuestion& question) {
  const auto* queue = std::get_if<QueueQuestion>(&question.work);
  if (queue == nullptr) return std::nullopt;
  return OneReplication{question, question.seed}.record_of(*queue, true);
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
    case Metric::slowdown:
      return picked(result.slowdown, expectation.statistic);
    case Metric::fairness:
      return result.fairness;
    case Metric::preemptions:
      return result.preemptions;
    case Metric::makespan:
      return result.makespan_seconds;
    case Metric::utilization:
      return result.utilization;
    case Metric::goodput:
      return result.goodput;
    case Metric::cost:
    case Metric::energy: {
      const bool mean =
          expectation.statistic == Statistic::none || expectation.statistic == Statistic::mean;
      if (!mean) return std::nullopt;
      return expectation.metric == Metric::cost ? result.cost_usd : result.energy_joules;
    }
    case Metric::allocation:
      return result.allocation;
    case Metric::fragmentation:
      return result.fragmentation;
    default:
      return std::nullopt;
  }
}

}  // namespace reckon
