#include "sim/measurement/start_times.h"

#include <algorithm>
#include <string_view>

#include "sim/forecast/quantiles.h"

namespace reckon {
namespace {

constexpr std::string_view kPull = "pull image", kContainer = "start container";  // spans of pods

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

}  // namespace

Fact<Seconds> measured_once(Seconds time, SourceId source) {
  constexpr double kWithin = 0.2;  // a share
  return {time, (1 - kWithin) * time, (1 + kWithin) * time, source};
}

StartTimes start_times(const Measurements& measured) {
  StartTimes times;
  for (const RunRecord& run : measured.runs) {
    const auto first = std::ranges::find_if(measured.steps, [&](const StepRecord& s) {
      return s.rank == 0 && s.attempt == run.attempt;
    });
    if (first == measured.steps.end()) continue;
    double start = (first->at - first->seconds - run.at).count();
    for (const EvaluationRecord& e : measured.evaluations)  // made again, before it
      if (e.rank == 0 && e.attempt == run.attempt && e.step <= first->step)
        start -= e.seconds.count();
    for (const CheckpointRecord& c : measured.checkpoints)
      if (c.action == CheckpointAction::restore && c.attempt == run.attempt) {
        start -= c.seconds.count();
        times.restore.push_back(c.seconds.count());
      }
    if (start > 0) times.process.push_back(start);
  }
  for (const Span& span : measured.timeline.spans) {
    const double seconds = to_seconds(span.end - span.begin).count();
    if (span.name == kPull && seconds > 0) times.pull.push_back(seconds);
    if (span.name == kContainer) times.container.push_back(seconds);
  }
  return times;
}

void start_as_seen(Plan& plan, const StartTimes& times, bool there) {
  if (times.process.empty()) return;
  const Fact<Seconds> nothing{Seconds{0}};
  const double container = times.container.empty() ? 0 : median(times.container);
  plan.job_start.framework_start = measured_once(Seconds{times.process.front() + container});
  plan.job_start.compile = nothing;  // the worker has none
  if (there) {
    plan.job_start.image_pull = nothing;
    for (PlannedPool& pool : plan.pools)
      pool.provisioning = pool.capacity_wait = pool.pool_creation = nothing;
  } else if (!times.pull.empty()) {
    plan.job_start.image_pull = measured_once(Seconds{median(times.pull)});
  }
}

}  // namespace reckon
