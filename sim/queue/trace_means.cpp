#include "sim/queue/trace_means.h"

#include <algorithm>

namespace reckon {
namespace {

/// The mean over those of `results` that have a value; nullopt: none has.
template <class Get>
std::optional<double> mean_over(const std::vector<TraceResult>& results, Get get) {
  double sum = 0;
  int count = 0;
  for (const TraceResult& r : results)
    if (const std::optional<double> value = get(r)) sum += *value, ++count;
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

/// Statistic by statistic, over those with a job.
template <class Get>
TimeStatistics mean_times(const std::vector<TraceResult>& results, Get get) {
  const auto mean = [&](double TimeStatistics::*which) {
    return mean_over(results,
                     [&](const TraceResult& r) -> std::optional<double> {
                       const TimeStatistics* times = get(r);
                       if (times == nullptr || times->count == 0) return std::nullopt;
                       return times->*which;
                     })
        .value_or(0);
  };
  TimeStatistics out;
  for (const TraceResult& r : results)
    if (const TimeStatistics* times = get(r)) out.count += times->count;
  out.count /= static_cast<std::int64_t>(results.size());
  out.mean = mean(&TimeStatistics::mean);
  out.p50 = mean(&TimeStatistics::p50);
  out.p95 = mean(&TimeStatistics::p95);
  return out;
}

const TeamAnswer* team_named(const TraceResult& result, const std::string& name) {
  const auto found = std::find_if(result.teams.begin(), result.teams.end(),
                                  [&](const TeamAnswer& t) { return t.name == name; });
  return found == result.teams.end() ? nullptr : &*found;
}

/// Of the teams that any replication has, in the order in which they are met.
std::vector<TeamAnswer> mean_teams(const std::vector<TraceResult>& results) {
  std::vector<TeamAnswer> teams;
  for (const TraceResult& r : results)
    for (const TeamAnswer& t : r.teams)
      if (std::none_of(teams.begin(), teams.end(),
                       [&](const TeamAnswer& known) { return known.name == t.name; }))
        teams.push_back({t.name, 0, 0, {}, {}, {}, std::nullopt, std::nullopt});
  for (TeamAnswer& team : teams) {
    const auto times = [&](TimeStatistics TeamAnswer::*which) {
      return mean_times(results, [&](const TraceResult& r) {
        const TeamAnswer* there = team_named(r, team.name);
        return there == nullptr ? nullptr : &(there->*which);
      });
    };
    team.waiting = times(&TeamAnswer::waiting);
    team.completion = times(&TeamAnswer::completion);
    team.slowdown = times(&TeamAnswer::slowdown);
    team.jobs = team.slowdown.count;
    for (const auto which : {&TeamAnswer::usd, &TeamAnswer::joules})
      team.*which = mean_over(results, [&](const TraceResult& r) -> std::optional<double> {
        const TeamAnswer* there = team_named(r, team.name);
        return there == nullptr ? std::nullopt : there->*which;
      });
    for (const TraceResult& r : results)
      if (const TeamAnswer* there = team_named(r, team.name))
        team.gpu_seconds += there->gpu_seconds / double(results.size());
  }
  return teams;
}

std::vector<double> mean_points(const std::vector<TraceResult>& results,
                                std::vector<double> LoadCurve::*curve) {
  std::vector<double> mean = (*results.front().curve).*curve;
  for (std::size_t k = 1; k < results.size(); ++k)
    for (std::size_t at = 0; at < mean.size(); ++at) mean[at] += ((*results[k].curve).*curve)[at];
  for (double& value : mean) value /= double(results.size());
  return mean;
}

}  // namespace

void take_mean(TraceResult& out, const std::vector<TraceResult>& results) {
  const auto number = [&](std::optional<double> TraceResult::*which) {
    if (out.*which) out.*which = mean_over(results, [&](const TraceResult& r) { return r.*which; });
  };
  const auto times = [&](std::optional<TimeStatistics> TraceResult::*which) {
    if (out.*which)
      out.*which = mean_times(
          results, [&](const TraceResult& r) { return r.*which ? &*(r.*which) : nullptr; });
  };
  if (out.curve) {
    out.curve->gpu_percent = mean_points(results, &LoadCurve::gpu_percent);
    out.curve->fragmentation_percent = mean_points(results, &LoadCurve::fragmentation_percent);
  }
  number(&TraceResult::allocation);
  number(&TraceResult::fragmentation);
  number(&TraceResult::makespan_seconds);
  number(&TraceResult::utilization);
  number(&TraceResult::fairness);
  number(&TraceResult::preemptions);
  number(&TraceResult::goodput);
  number(&TraceResult::cost_usd);
  number(&TraceResult::energy_joules);
  number(&TraceResult::overflow_jobs);
  number(&TraceResult::overflow_reclaims);
  number(&TraceResult::overflow_node_hours);
  number(&TraceResult::overflow_usd);
  times(&TraceResult::waiting);
  times(&TraceResult::completion);
  times(&TraceResult::slowdown);
  out.teams = mean_teams(results);
  if (!out.karpenter) return;
  std::vector<const KarpenterAnswer*> answers;
  for (const TraceResult& r : results) answers.push_back(&*r.karpenter);
  out.karpenter = mean_of(answers);
}

}  // namespace reckon
