#include "planner/fleet/make.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include "sim/base/limits.h"
#include "sim/base/parallel.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/spec/jobs.h"
#include "sim/scenario/yaml/reader.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::planner {
namespace {

/// Options of a job that are forecast, for each quota or none: the fastest, the cheapest, and what
/// lies between them. Few replications do: the replay has them all.
constexpr std::size_t kOptions = 12;
constexpr int kOptionReplications = 100;

/// A job's scenario as the question of `reckon plan` for it alone.
Expected<Question> question_of_job(const FleetSetting& s, const JobSpec& job) {
  auto text = scenario_of_job(s.base.text, s.base.name, s.base.overrides, s.base.layers, job.name);
  if (!text) return tl::unexpected(std::move(text.error()));
  Base base = s.base;
  base.text = std::move(*text);
  base.layers.clear();
  base.overrides.clear();
  auto question = make_question(std::move(base), s.catalog);
  if (question && question->may.as_scaled)
    return tl::unexpected(Diagnostics{
        {Severity::error, question->file.places.find("cluster.pools"),
         "a fleet shares out nodes that are bought, and these come when something asks for them",
         "plan each job by itself, or autoscaler: cluster_autoscaler without an expander"}});
  return question;
}

/// One way to run a job, before it is forecast.
struct Way {
  Candidate candidate;
  std::string quota;
};

std::string quota_of(const Question& question, const Space& space, const Candidate& c) {
  const Hardware& h = space.site(c).hardware;
  const std::string key =
      fmt::format("{}/{}/{}", to_text(h.provider), space.offer(c).region, h.accelerator);
  return question.quota.contains(key) ? key : "";
}

/// Of as many nodes of one kind, bought in one way, the fastest; then for each quota (held nodes
/// too are by themselves) what nothing beats in time and cost, thinned to kOptions.
std::vector<Candidate> worth_forecasting(const Question& question, const Space& space) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, int>;
  std::map<Key, Candidate> fastest;
  for (const Candidate& c : space.candidates) {
    if (!std::isfinite(c.cost) || !std::isfinite(c.estimate)) continue;
    const auto [at, fresh] = fastest.try_emplace({c.site, c.offer, space.split(c).nodes}, c);
    if (!fresh && c.time < at->second.time) at->second = c;
  }
  std::map<std::pair<bool, std::string>, std::vector<Candidate>> groups;
  for (const auto& [key, c] : fastest)
    groups[{space.offer(c).pricing == CapacityType::reserved, quota_of(question, space, c)}]
        .push_back(c);
  std::vector<Candidate> out;
  for (auto& [key, group] : groups) {
    std::ranges::sort(group, {}, [](const Candidate& c) { return std::pair(c.time, c.cost); });
    std::vector<Candidate> front;
    for (const Candidate& c : group)
      if (front.empty() || c.cost < front.back().cost) front.push_back(c);
    const std::size_t n = std::min(front.size(), kOptions);
    for (std::size_t k = 0; k < n; ++k)
      out.push_back(front[n == 1 ? front.size() - 1 : k * (front.size() - 1) / (n - 1)]);
  }
  return out;
}

/// A pool that grows with its jobs (held: that stands) with the job alone in it.
std::vector<Change> alone(const Question& question, const Space& space, const Candidate& c,
                          const Plan& plan) {
  std::vector<Change> changes = changes_of(question, space, c);
  const PlannedStrategy& strategy = plan.only_job().strategy;
  const StrategyTraits& traits = traits_of(strategy.kind);
  if ((traits.gang || traits.servers) && !traits.any_degrees)
    changes.emplace_back(SetWorkers{strategy.workers});
  const std::string& pool = worker_pool(question.file.scenario).name;
  const int nodes = space.split(c).nodes;
  const bool held = space.offer(c).pricing == CapacityType::reserved;
  changes.emplace_back(SetNodes{pool, {held ? nodes : 0, held ? nodes : 0, nodes}});
  changes.emplace_back(SetAutoscaling{pool, !held});
  // Nodes that are held are paid for the period, by the program: no other pool has them too.
  const auto& prices = question.file.scenario.prices;
  if (!held && prices && !prices->reserved.empty()) changes.emplace_back(RemoveReservations{});
  return changes;
}

/// The question's scenario with the changes, as a file.
Expected<std::string> file_text(const Question& question, std::span<const Change> changes) {
  const Base& base = question.base;
  std::vector<std::string> overrides = base.overrides;
  for (std::string& text : texts(changes)) overrides.push_back(std::move(text));
  constexpr std::array<std::string_view, 4> kLeftOut{"plan", "planned", "extends", "expect"};
  return flat_scenario(base.text, base.name, overrides, base.layers, kLeftOut);
}

double usd_per_hour(HourlyRate rate) { return 1e-9 * double(rate.nano_usd_per_hour); }

/// What its jobs share, so that jobs of another kind can be on it.
std::string agrees_on(const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  return fmt::format("{} {} {}", to_text(job.precision),
                     plan.pool_with(Role::worker)->efficiency.stack, job.checkpoint.storage.name);
}

FleetPool fleet_pool(const Question& question, const Space& space, const Candidate& c,
                     const Plan& plan) {
  FleetPool pool;
  pool.hardware = space.site(c).hardware;
  pool.offer = space.offer(c);
  pool.held = pool.offer.pricing == CapacityType::reserved;
  const PlannedPool& nodes = *plan.pool_with(Role::worker);
  if (pool.held && nodes.reservation) {
    // make_plan deals out no more nodes than the pool has: how many there are, the scenario says.
    for (const ReservationSpec& r : question.file.scenario.prices->reserved)
      if (r.machine == nodes.machine.name) pool.most_held = r.count;
    pool.held_usd_hour = usd_per_hour(nodes.reservation->price);
  }
  pool.fee_usd_hour = usd_per_hour(plan.billing.management);
  pool.quota = quota_of(question, space, c);
  pool.agrees = agrees_on(plan);
  return pool;
}

bool same_pool(const FleetPool& a, const FleetPool& b) {
  return same_hardware(a.hardware, b.hardware) && a.offer.region == b.offer.region &&
         a.offer.pricing == b.offer.pricing && a.agrees == b.agrees;
}

/// An option with the pool that it is on, before pools are told apart.
struct Found {
  FleetOption option;
  FleetPool pool;
  std::string refused;  // why it cannot be had
};

Found forecast_alone(const FleetSetting& s, const Question& question, const Space& space,
                     const Candidate& c, std::optional<double> probability) {
  Found found;
  const auto fixed = plan_of(question, s.catalog, space, c);
  if (!fixed) return found.refused = fixed.error().front().what, found;
  const std::vector<Change> changes = alone(question, space, c, *fixed);
  const auto plan = plan_with(question, changes, s.catalog);
  if (!plan) return found.refused = plan.error().front().what, found;
  ForecastOptions how;
  how.seed = s.seed;
  how.replications = kOptionReplications;
  how.threads = 1;
  how.assumption_effects = false;
  const Forecast f = make_forecast(*plan, s.network, how);
  if (!f.feasible) return found.refused = "does not fit in memory", found;
  if (f.unfinished_share > 0) return found.refused = "it does not end in some replication", found;
  if (!f.cost_usd) return found.refused = "no price is known", found;
  found.pool = fleet_pool(question, space, c, *plan);
  if (found.pool.held && found.pool.most_held < space.split(c).nodes)
    return found.refused = "more nodes than are reserved", found;
  found.option.split = space.split(c);
  found.option.seconds = f.time_seconds.mean;
  found.option.held_to =
      probability ? quantile(f.times_seconds, *probability) : f.time_seconds.mean;
  found.option.usd = f.cost_usd->mean - f.cost_breakdown_usd[std::size_t(CostPart::management)];
  if (found.pool.held)  // nodes are paid by the period
    for (const CostPart part :
         {CostPart::accelerators, CostPart::machines, CostPart::idle, CostPart::spares})
      found.option.usd -= f.cost_breakdown_usd[std::size_t(part)];
  found.option.usd = std::max(0.0, found.option.usd);
  const auto text = file_text(question, changes);
  if (!text) return found.refused = text.error().front().what, found;
  found.option.text = *text;
  return found;
}

std::optional<Limit> deadline_of(const PlanSpec& plan, const std::string& job) {
  const auto own = plan.deadlines.find(job);
  const std::string& text = own != plan.deadlines.end() ? own->second : plan.deadline;
  if (text.empty()) return std::nullopt;
  const std::size_t at = text.find('@');
  Limit limit;
  limit.text = text;
  limit.value = parse_duration(text.substr(0, at))->count();
  if (at != std::string::npos) limit.probability = *parse_fraction(text.substr(at + 1));
  return limit;
}

void add_jobs(const Scenario& scenario, Fleet& fleet) {
  for (std::size_t kind = 0; kind < scenario.jobs.size(); ++kind) {
    const JobSpec& job = scenario.jobs[kind];
    for (int k = 0; k < job.times; ++k)
      fleet.jobs.push_back({job.times > 1 ? fmt::format("{}-{}", job.name, k + 1) : job.name, kind,
                            (job.submit + double(k) * job.every.value_or(Seconds{0})).count(),
                            deadline_of(*scenario.plan, job.name)});
  }
}

/// The period that is written, or what ends with the last deadline.
std::optional<double> period_of(const Scenario& scenario, const Fleet& fleet) {
  if (const auto& period = scenario.plan->period) return period->count();
  double end = 0;
  for (const FleetJob& job : fleet.jobs) {
    if (!job.deadline) return std::nullopt;
    end = std::max(end, job.submit + job.deadline->value);
  }
  return end;
}

Expected<void> add_options(const FleetSetting& s, std::size_t kind, FleetAnswer& answer) {
  const JobSpec& job = s.file.scenario.jobs[kind];
  const auto question = question_of_job(s, job);
  if (!question) return tl::unexpected(question.error());
  for (const auto& [place, count] : question->quota)
    if (std::ranges::count(place, '/') == 3)
      return tl::unexpected(Diagnostics{
          {Severity::error, question->file.places.find("plan.quota"),
           fmt::format("quotas by how nodes are bought are not planned for several jobs yet: '{}'",
                       place),
           "write provider/region/accelerator, for all of them together"}});
  answer.fleet.quota = question->quota;
  SpaceOptions how;
  how.seed = s.seed;
  how.replications = kOptionReplications;
  how.threads = s.threads;
  const Space space = make_space(*question, s.catalog, s.network, how);
  answer.considered += space.considered;
  const std::vector<Candidate> ways = worth_forecasting(*question, space);
  const auto deadline = deadline_of(*s.file.scenario.plan, job.name);
  std::vector<Found> found(ways.size());
  parallel_for(ways.size(), s.threads, [&](std::size_t k) {
    try {
      found[k] = forecast_alone(s, *question, space, ways[k],
                                deadline ? deadline->probability : std::nullopt);
    } catch (const Overflow& beyond) {  // the other ways may do without such numbers
      found[k].refused = beyond.what();
    } catch (const TooMuchWork& beyond) {
      found[k].refused = beyond.what();
    }
  });
  std::string refused = "nothing that the question allows holds it";
  for (Found& one : found) {
    if (!one.refused.empty()) {
      refused = one.refused;
      continue;
    }
    auto& pools = answer.fleet.pools;
    const auto known =
        std::ranges::find_if(pools, [&](const FleetPool& p) { return same_pool(p, one.pool); });
    one.option.pool = std::size_t(known - pools.begin());
    if (known == pools.end()) pools.push_back(std::move(one.pool));
    answer.fleet.options[kind].push_back(std::move(one.option));
  }
  if (answer.fleet.options[kind].empty())
    answer.without_plan.push_back(fmt::format("job '{}': {}", job.name, refused));
  return {};
}

}  // namespace

bool is_fleet(const ScenarioFile& file) { return !file.scenario.jobs.empty(); }

Diagnostics check_fleet(const ScenarioFile& file, const Catalog& catalog) {
  Diagnostics out;
  const auto error = [&](const std::string& path, std::string what, std::string hint) {
    out.push_back({Severity::error, file.places.find(path), std::move(what), std::move(hint)});
  };
  const Scenario& s = file.scenario;
  if (!s.plan) {
    error("jobs", "a plan for several jobs needs to know what may vary",
          "plan: {vary: {accelerator: [T4], nodes: 1..4}, deadline: 8h@95%}");
    return out;
  }
  // Each has a column of the program for every way and time to run it.
  constexpr std::int64_t kMostJobs = 2000;
  std::int64_t jobs = 0;
  for (const JobSpec& job : s.jobs) jobs += job.times;
  if (jobs > kMostJobs)
    error("jobs", fmt::format("{} jobs; at most {} are planned together", jobs, kMostJobs),
          "fewer jobs or times, and a shorter period");
  const ServiceRules* service = planning::service_of(s.cluster, catalog);
  if (service != nullptr && service->scales != Scales::all_pools)
    error("cluster",
          fmt::format("pools of {} do not grow and shrink with their jobs", to_text(service->id)),
          "a plan for several jobs needs a Kubernetes service: " +
              planning::autoscaling_services(catalog));
  for (const char* mix : {"base", "fallback"})
    if (s.plan->vary.contains(mix))
      error(std::string("plan.vary.") + mix,
            "mixes of one job's nodes are not planned for several jobs yet",
            "the jobs' pools are a mix already: pricing: [spot, on_demand]");
  for (const auto& [name, text] : s.plan->deadlines) {
    const std::string& job = name;
    if (std::ranges::none_of(s.jobs, [&](const JobSpec& j) { return j.name == job; }))
      error("plan.deadlines." + job, fmt::format("no job is named '{}'", job),
            "the names of jobs are those of the list `jobs:`");
  }
  if (!s.plan->deadline.empty() &&
      parse_utc_time(s.plan->deadline.substr(0, s.plan->deadline.find('@'))))
    error("plan.deadline", "of several jobs a deadline is a duration from each one's submit",
          "deadline: 8h@95%");
  const Objective objective = s.plan->objective.value_or(Objective::cost);
  if (objective != Objective::cost && objective != Objective::time &&
      objective != Objective::cost_under_deadline && objective != Objective::throughput_per_dollar)
    error("plan.objective",
          fmt::format("several jobs are not planned for the least {} yet", to_text(objective)),
          "objective: cost, or time");
  return out;
}

Expected<void> make_fleet(const FleetSetting& s, FleetAnswer& answer) {
  const Scenario& scenario = s.file.scenario;
  Fleet& fleet = answer.fleet;
  add_jobs(scenario, fleet);
  const auto period = period_of(scenario, fleet);
  if (!period)
    return tl::unexpected(
        Diagnostics{{Severity::error, s.file.places.find("plan"),
                     "a plan for several jobs needs its period: not every job has a deadline",
                     "plan: {period: 7d}"}});
  fleet.period = *period;
  fleet.by_time = answer.objective == Objective::time;
  answer.option_replications = kOptionReplications;
  fleet.options.resize(scenario.jobs.size());
  for (std::size_t kind = 0; kind < scenario.jobs.size(); ++kind)
    if (auto added = add_options(s, kind, answer); !added) return added;
  return {};
}

}  // namespace reckon::planner
