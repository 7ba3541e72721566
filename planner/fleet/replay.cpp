#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/fleet/make.h"
#include "sim/base/parallel.h"
#include "sim/forecast/replicate.h"
#include "sim/scenario/spec/jobs.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "sim/scenario/yaml/yaml_word.h"

// The program's choice lived by `simulate`: one scenario a pool, all under the same draws.
namespace reckon::planner {
namespace {

constexpr double kReplayHour = 3600;

const FleetOption& option_of(const Fleet& fleet, const FleetChoice& choice, std::size_t job) {
  return fleet.options[fleet.jobs[job].kind][choice.runs[job].option];
}

/// Most nodes that run at once in the mean; the pool may have so many.
int most_at_once(const Fleet& fleet, const FleetChoice& choice,
                 const std::vector<std::size_t>& runs) {
  int most = 0;
  for (const std::size_t at : runs) {
    int nodes = 0;
    const double now = choice.runs[at].start;
    for (const std::size_t other : runs) {
      const FleetOption& o = option_of(fleet, choice, other);
      const double start = choice.runs[other].start;
      if (start <= now && now < start + o.seconds) nodes += o.nodes();
    }
    most = std::max(most, nodes);
  }
  return most;
}

std::map<std::size_t, std::vector<std::size_t>> jobs_by_pool(const Fleet& fleet,
                                                             const FleetChoice& choice) {
  std::map<std::size_t, std::vector<std::size_t>> out;
  for (std::size_t j = 0; j < fleet.jobs.size(); ++j)
    out[option_of(fleet, choice, j).pool].push_back(j);
  for (auto& [pool, runs] : out)
    std::ranges::stable_sort(runs, {}, [&](std::size_t j) { return choice.runs[j].start; });
  return out;
}

/// When each job ends, by job and replication: the forecast's own lives, of which it keeps
/// quantiles only. Infinite: never.
std::vector<std::vector<double>> ends_of(const FleetSetting& s, const Plan& plan,
                                         int replications) {
  const ForecastSetup setup = make_setup(plan, s.network);
  std::vector<std::vector<double>> out(plan.jobs.size(),
                                       std::vector<double>(std::size_t(replications)));
  parallel_for(std::size_t(replications), s.threads, [&](std::size_t k) {
    const LifeResult life = Replicator(setup).run(s.seed, std::uint32_t(k));
    for (std::size_t j = 0; j < out.size(); ++j)
      out[j][k] =
          life.jobs[j].finished ? to_seconds(life.jobs[j].finish - SimTime{}).count() : kNoLimit;
  });
  return out;
}

/// Times count from the user's submit, whenever the program lets the job start.
ReplayedJob judged_job(const FleetJob& asked, std::vector<double> times) {
  for (double& t : times) t -= asked.submit;
  ReplayedJob out;
  out.seconds = quantiles(times);
  out.held_to = out.seconds.mean;
  if (!asked.deadline) return out;
  out.held_to = held_against(*asked.deadline, out.seconds, times);
  out.meets = out.held_to <= asked.deadline->value;
  return out;
}

/// The pools' costs and ends together, replication by replication.
void judge_together(const Fleet& fleet, const FleetChoice& choice, Replay& replay) {
  const std::size_t n = replay.pools.front().forecast.times_seconds.size();
  std::vector<double> usd(n), ends(n);
  for (ReplayedPool& p : replay.pools) {
    const Forecast& f = p.forecast;
    double first = kNoLimit;
    for (const JobForecast& job : f.jobs) first = std::min(first, job.submit.count());
    const FleetPool& pool = fleet.pools[p.pool];
    for (std::size_t k = 0; k < n; ++k) {
      const double end = first + f.times_seconds[k];
      const double left = pool.held ? std::max(0.0, fleet.period - end) : 0;
      const double held = left / kReplayHour * pool.held_usd_hour * choice.held[p.pool];
      p.held_usd += held / double(n);
      usd[k] += held + (f.costs_usd.empty() || !std::isfinite(end) ? kNoLimit : f.costs_usd[k]);
      ends[k] = std::max(ends[k], end);
    }
  }
  replay.usd = quantiles(usd);
  replay.end_seconds = quantiles(ends);
  if (!fleet.budget) return;
  replay.budget_held_to = held_against(*fleet.budget, replay.usd, usd);
  replay.meets_budget = replay.budget_held_to <= fleet.budget->value;
}

}  // namespace

std::string pool_scenario(const FleetAnswer& answer, const FleetChoice& choice, std::size_t pool,
                          const std::vector<std::size_t>& runs, std::size_t number) {
  const Fleet& fleet = answer.fleet;
  std::vector<OneJob> jobs;
  for (const std::size_t j : runs)
    jobs.push_back(
        {fleet.jobs[j].name, Seconds{choice.runs[j].start}, option_of(fleet, choice, j).text});
  const std::string text = scenario_of_jobs(jobs);
  const int held = choice.held[pool];
  const int most = fleet.pools[pool].held ? held : most_at_once(fleet, choice, runs);
  const auto file = parse_scenario(text, answer.scenario);
  const std::string name = file ? worker_pool(file->scenario).name : "";
  const std::vector<std::string> overrides{
      "name=" + yaml_word(fmt::format("{}-{}", answer.scenario, number)),
      fmt::format("cluster.pools.{}.nodes={{initial: {}, min: {}, max: {}}}", name, held, held,
                  most),
      fmt::format("forecast={{replications: {}, seed: {}}}", answer.replications, answer.seed)};
  return flat_scenario(text, answer.scenario, overrides, {}, {}).value_or(text);
}

Expected<Replay> replay(const FleetSetting& s, const FleetAnswer& answer, const FleetChoice& choice,
                        int replications) {
  const Fleet& fleet = answer.fleet;
  Replay out;
  out.jobs.resize(fleet.jobs.size());
  for (const auto& [pool, runs] : jobs_by_pool(fleet, choice)) {
    ReplayedPool made;
    made.pool = pool;
    made.text = pool_scenario(answer, choice, pool, runs, out.pools.size() + 1);
    auto file = parse_scenario(made.text, s.base.name);
    if (!file) return tl::unexpected(std::move(file.error()));
    if (s.base.complete)
      if (Diagnostics unread = s.base.complete(*file); !unread.empty())
        return tl::unexpected(std::move(unread));
    const auto plan = planned(s.base, *file, s.catalog);
    if (!plan) return tl::unexpected(plan.error());
    made.nodes = plan->pool_with(Role::worker)->nodes_max;
    ForecastOptions how;
    how.replications = replications;
    how.seed = s.seed;
    how.threads = s.threads;
    how.assumption_effects = false;
    made.forecast = make_forecast(*plan, s.network, how);
    const auto ends = ends_of(s, *plan, replications);
    for (std::size_t k = 0; k < runs.size(); ++k)
      out.jobs[runs[k]] = judged_job(fleet.jobs[runs[k]], ends[k]);
    out.pools.push_back(std::move(made));
  }
  judge_together(fleet, choice, out);
  return out;
}

std::string fleet_file(const FleetAnswer& answer, std::size_t replayed_pool,
                       std::string_view reckon_version) {
  const ReplayedPool& p = answer.replay->pools[replayed_pool];
  const FleetPool& pool = answer.fleet.pools[p.pool];
  std::string out = fmt::format(
      "# Pool {} of the plan for {} made by `reckon plan` {}: {} in {}, {}, prices as of {}.\n"
      "# `reckon simulate` on this file gives what the plan's replay said of it: {:.2f} USD in the "
      "mean.\n",
      replayed_pool + 1, answer.scenario, reckon_version, hardware_text(pool.hardware, p.nodes),
      pool.offer.region, to_text(pool.offer.pricing),
      p.forecast.prices_as_of.empty() ? "unknown" : p.forecast.prices_as_of,
      p.forecast.cost_usd ? p.forecast.cost_usd->mean : 0);
  if (pool.held)
    out += fmt::format(
        "# Its {} nodes are held: from the last job's end to the end of the period they cost "
        "{:.2f} "
        "USD more.\n",
        p.nodes, p.held_usd);
  return out + p.text;
}

}  // namespace reckon::planner
