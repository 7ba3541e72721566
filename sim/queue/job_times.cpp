#include "sim/queue/job_times.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"

namespace reckon {

TimeStatistics statistics_of(std::vector<double> values) {
  TimeStatistics out;
  out.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double p) {
    const double at = p * double(values.size() - 1);
    const auto k = static_cast<std::size_t>(at);
    const double next = values[std::min(k + 1, values.size() - 1)];
    return values[k] + (at - double(k)) * (next - values[k]);
  };
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
  out.p50 = quantile(0.5);
  out.p95 = quantile(0.95);
  return out;
}

SimDuration kept_work(SimDuration done, std::optional<Seconds> checkpoint) {
  if (!checkpoint) return SimDuration{0};
  const SimDuration each = to_clock(*checkpoint);
  return each.count() > 0 ? done / each * each : done;
}

QueueRun queue_of_jobs(std::span<const JobRequest> jobs, std::size_t first_measured,
                       std::size_t measured) {
  QueueRun run;
  run.first_measured = first_measured;
  run.measured = measured;
  run.jobs.reserve(jobs.size());
  for (const JobRequest& job : jobs)
    run.jobs.push_back({job.submit, std::nullopt, std::nullopt, 0, false});
  return run;
}

int gpus_of(std::span<const NodeGroup> groups) {
  return std::accumulate(groups.begin(), groups.end(), 0,
                         [](int sum, const NodeGroup& g) { return sum + g.nodes * g.gpus; });
}

double whole_gpus_of(std::span<const NodeGroup> groups) {
  return std::accumulate(groups.begin(), groups.end(), 0.0, [](double sum, const NodeGroup& g) {
    return sum + double(g.nodes) * g.gpus / g.devices_of_gpu;
  });
}

void summarize(QueueRun& run, double gpus) {
  RECKON_CHECK(run.first_measured + run.measured <= run.jobs.size());
  std::vector<double> waited, completed;
  for (std::size_t k = 0; k < run.measured; ++k) {
    const JobTimes& job = run.jobs[run.first_measured + k];
    if (job.start) waited.push_back(to_seconds(*job.start - job.submit).count());
    if (job.end) completed.push_back(to_seconds(*job.end - job.submit).count());
    run.preemptions += job.preemptions;
  }
  run.waiting = statistics_of(std::move(waited));
  run.completion = statistics_of(std::move(completed));
  std::optional<SimTime> first, last;
  for (const JobTimes& job : run.jobs) {
    if (!job.end) continue;
    first = std::min(first.value_or(job.submit), job.submit);
    last = std::max(last.value_or(*job.end), *job.end);
  }
  if (!last) return;
  run.makespan_seconds = to_seconds(*last - *first).count();
  if (run.makespan_seconds > 0 && gpus > 0)
    run.utilization = run.gpu_seconds / (run.makespan_seconds * gpus);
}

namespace {

/// What was told of the jobs of one team, or of all.
struct Told {
  std::vector<double> waited, completed, slowed;
  double gpu_seconds = 0;
};

double jain_index(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double x : values) sum += x, squares += x * x;
  return sum * sum / (double(values.size()) * squares);
}

}  // namespace

QueueAnswers answers_of(const QueueRun& run, const JobList& list) {
  const auto& names = list.names.teams.names();
  std::vector<Told> teams(names.size());
  std::vector<double> slowed;
  for (std::size_t k = run.first_measured; k < run.first_measured + run.measured; ++k) {
    const JobTimes& times = run.jobs[k];
    if (!times.end) continue;
    const double length = to_seconds(std::get<FixedTime>(list.jobs[k].work).time).count();
    const double took = to_seconds(*times.end - times.submit).count();
    slowed.push_back(std::max(1.0, took / std::max(length, kShortestOfSlowdown.count())));
    if (list.jobs[k].owner.team < 0) continue;
    Told& team = teams[static_cast<std::size_t>(list.jobs[k].owner.team)];
    team.waited.push_back(to_seconds(*times.start - times.submit).count());
    team.completed.push_back(took);
    team.slowed.push_back(slowed.back());
    team.gpu_seconds += length * list.jobs[k].whole_gpus();
  }
  QueueAnswers out;
  double useful = 0;
  for (std::size_t k = 0; k < run.jobs.size(); ++k)
    if (run.jobs[k].end && !run.jobs[k].overflowed)
      useful += to_seconds(std::get<FixedTime>(list.jobs[k].work).time).count() *
                list.jobs[k].whole_gpus();
  if (run.gpu_seconds > 0) out.goodput = std::min(1.0, useful / run.gpu_seconds);
  std::vector<double> means;
  for (std::size_t t = 0; t < teams.size(); ++t) {
    if (teams[t].slowed.empty()) continue;
    out.teams.push_back({names[t], static_cast<std::int64_t>(teams[t].slowed.size()),
                         teams[t].gpu_seconds, statistics_of(std::move(teams[t].waited)),
                         statistics_of(std::move(teams[t].completed)),
                         statistics_of(std::move(teams[t].slowed)), std::nullopt, std::nullopt});
    means.push_back(out.teams.back().slowdown.mean);
  }
  out.slowdown = statistics_of(std::move(slowed));
  if (means.size() > 1) out.fairness = jain_index(means);
  return out;
}

}  // namespace reckon
