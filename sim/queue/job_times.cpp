#include "sim/queue/job_times.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"

namespace reckon {

TimeStatistics statistics_of(std::vector<double> seconds) {
  TimeStatistics out;
  out.count = static_cast<std::int64_t>(seconds.size());
  if (seconds.empty()) return out;
  std::sort(seconds.begin(), seconds.end());
  const auto quantile = [&](double p) {
    const double at = p * double(seconds.size() - 1);
    const auto k = static_cast<std::size_t>(at);
    const double next = seconds[std::min(k + 1, seconds.size() - 1)];
    return seconds[k] + (at - double(k)) * (next - seconds[k]);
  };
  out.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / double(seconds.size());
  out.p50 = quantile(0.5);
  out.p95 = quantile(0.95);
  return out;
}

void summarize(QueueRun& run, int gpus) {
  RECKON_CHECK(run.first_measured + run.measured <= run.jobs.size());
  std::vector<double> waited, completed;
  for (std::size_t k = 0; k < run.measured; ++k) {
    const JobTimes& job = run.jobs[run.first_measured + k];
    if (job.start) waited.push_back(to_seconds(*job.start - job.submit).count());
    if (job.end) completed.push_back(to_seconds(*job.end - job.submit).count());
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

}  // namespace reckon
