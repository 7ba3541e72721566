#include "sim/scenario/resolve/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/draft.h"

namespace reckon {
namespace {

constexpr double kHour = 3600;
constexpr int kHoursADay = 24;
/// Bounds the work of one forecast: a request costs some 50 ns.
constexpr double kMostRequestsOfPeriod = 5e8;
/// Of the autoscaler, in one forecast: five days of one a second, eighty of one in 15 s.
constexpr double kMostLooks = 500'000;

using Problems = Diagnostics;

void add(Problems& problems, const ScenarioFile& file, std::string_view path, std::string what,
         std::string hint = "") {
  problems.push_back({Severity::error, file.places.find(path), std::move(what), std::move(hint)});
}

/// Why serving_pool() has none.
void report_no_pool(const ScenarioFile& file, Problems& problems) {
  const Scenario& scenario = file.scenario;
  const std::string& named = scenario.serving->pool;
  const auto& pools = scenario.cluster.pools;
  const auto found = std::ranges::find_if(pools, [&](const PoolSpec& pool) {
    return named.empty() ? pool.role == Role::inference : pool.name == named;
  });
  if (!named.empty() && found == pools.end())
    add(problems, file, "serving.pool", fmt::format("no pool is named '{}'", named));
  else if (!named.empty())
    add(problems, file, "serving.pool",
        fmt::format("pool '{}' does not have role inference", named), "give it role: inference");
  else if (found == pools.end())
    add(problems, file, "serving", "no pool has role inference",
        "add a pool: {name: serving, role: inference, machine: n1-standard-8, accelerator: {type: "
        "T4}, nodes: 2}");
  else
    add(problems, file, "serving", "several pools have role inference",
        fmt::format("say which serves: pool: {}", found->name));
}

const WorkloadSpec* training_of(const Scenario& scenario) {
  if (scenario.workload) return &*scenario.workload;
  return scenario.jobs.empty() ? nullptr : &scenario.jobs.front().workload;
}

/// What a replica runs: what the serving block says, else the training.
planning::ModelUse use_of(const Scenario& scenario) {
  const ServingSpec& serving = *scenario.serving;
  planning::ModelUse use;
  if (const WorkloadSpec* training = training_of(scenario); training && !serving.model) {
    use = planning::use_of(*training);
    // A profile that names a model is what the program is like, whatever else is said.
    if (use.container && std::holds_alternative<std::string>(use.container->profile))
      use.model = nullptr;
  }
  if (serving.model) use.model = &*serving.model;
  if (serving.sequence_length) use.sequence_length = serving.sequence_length;
  if (serving.precision) use.precision = serving.precision;
  if (serving.stack == kMeasuredStack)
    use.stack.clear();
  else if (!serving.stack.empty())
    use.stack = serving.stack;
  return use;
}

/// Mistakes in what the model is made of point into the serving block where it says it, into the
/// workload otherwise.
Places places_of(const ScenarioFile& file) {
  Places places = file.places;
  if (!file.scenario.workload && !file.scenario.jobs.empty())
    places = places.with_alias("jobs." + file.scenario.jobs.front().name + ".workload", "workload");
  if (!training_of(file.scenario)) places = places.with_alias("serving", "workload");
  for (const char* key : {"model", "sequence_length", "precision", "stack"})
    if (!(file.places.find(std::string("serving.") + key) == file.places.find("serving")))
      places = places.with_alias(std::string("serving.") + key, std::string("workload.") + key);
  return places;
}

ScenarioFile file_of_serving(const ScenarioFile& file, const PoolSpec& pool) {
  ScenarioFile alone = file;
  Scenario& s = alone.scenario;
  s.workload.reset();
  s.jobs.clear();
  s.serving.reset();
  s.expect.clear();
  // One reservation does not hold for two: it is the training's.
  if (s.prices && trains(file.scenario)) s.prices->reserved.clear();
  PoolSpec one = pool;
  one.role = Role::worker;
  s.cluster.pools = {std::move(one)};
  alone.places = places_of(file);
  return alone;
}

void resolve_replicas(ServingPlan& plan, const ServingSpec& spec) {
  ReplicaRules& rules = plan.replicas;
  const ServingReplicasSpec& given = spec.replicas;
  rules.min = given.min;
  rules.max = given.max;
  rules.standby = given.standby;
  rules.initial = given.initial.value_or(given.min);
  plan.initial_given = given.initial.has_value();
  rules.target_utilization = given.target_utilization.value_or(rules.target_utilization);
  rules.sync_period = spec.autoscaler.sync_period.value_or(rules.sync_period);
  rules.tolerance = spec.autoscaler.tolerance.value_or(rules.tolerance);
  rules.downscale_stabilization =
      spec.autoscaler.downscale_stabilization.value_or(rules.downscale_stabilization);
}

void check_capacity(const ScenarioFile& file, const ServingPlan& plan, Problems& problems) {
  const int needed = plan.replicas.max + plan.replicas.standby;
  if (needed <= plan.most_replicas()) return;
  const PlannedPool& pool = plan.pool();
  add(problems, file, "serving.replicas",
      fmt::format(
          "{} replicas{} do not fit into pool '{}', which holds at most {}", plan.replicas.max,
          plan.replicas.standby > 0 ? fmt::format(" and {} on standby", plan.replicas.standby)
                                    : std::string(),
          pool.name, plan.most_replicas()),
      fmt::format("it has at most {} node{} with room for {} each: more nodes (or nodes.max with "
                  "autoscaling), or fewer replicas",
                  pool.nodes_max, pool.nodes_max == 1 ? "" : "s", plan.replicas_per_node()));
}

void check_size(const ScenarioFile& file, const ServingPlan& plan, Problems& problems) {
  double requests = 0;
  const double period = plan.period.count();
  if (plan.requests_per_second.size() == 1) {
    requests = plan.requests_per_second.front() * period;
  } else {
    for (double t = 0; t < period; t += kHour)
      requests += plan.rate_at(Seconds{t}) * std::min(kHour, period - t);
  }
  requests += plan.rate_at(Seconds{}) * plan.warm_up().count();
  if (requests > kMostRequestsOfPeriod)
    add(problems, file, "serving.period",
        fmt::format("{} requests are more than can be simulated one by one",
                    format_count(std::round(requests))),
        fmt::format("at most {}: a shorter period", format_count(kMostRequestsOfPeriod)));
  const ReplicaRules& rules = plan.replicas;
  const double looks = (plan.warm_up() + plan.period) / rules.sync_period;
  if (rules.max > rules.min && looks > kMostLooks)
    add(problems, file, "serving.autoscaler.sync_period",
        fmt::format("{} looks of the autoscaler are more than can be simulated",
                    format_count(std::round(looks))),
        fmt::format("at most {}: a longer sync_period or a shorter period",
                    format_count(kMostLooks)));
}

/// No replica is more than 100 % busy: where that is within the tolerance of the target, none is
/// ever added.
void check_target(const ScenarioFile& file, const ServingPlan& plan, Problems& problems) {
  const ReplicaRules& rules = plan.replicas;
  if (rules.max == rules.min || rules.target_utilization * (1 + rules.tolerance) < 1) return;
  const bool given = file.scenario.serving->replicas.target_utilization.has_value();
  add(problems, file,
      given ? "serving.replicas.target_utilization" : "serving.autoscaler.tolerance",
      fmt::format("a target of {} is never exceeded by more than the tolerance of {}: no replica "
                  "would be added",
                  format_percent(rules.target_utilization), format_percent(rules.tolerance)),
      "target_utilization x (1 + tolerance) has to be below 100%");
}

void refuse_what_is_not_simulated(const ScenarioFile& file, const PoolSpec& pool,
                                  Problems& problems) {
  const std::string path = "cluster.pools." + pool.name;
  if (pool.tpu)
    add(problems, file, path + ".tpu", "serving on TPU slices is not simulated yet",
        "a machine with GPUs, or without");
  const AutoscalerKind autoscaler = file.scenario.cluster.autoscaler;
  if (autoscaler != AutoscalerKind::cluster_autoscaler)
    add(problems, file, "cluster.autoscaler",
        fmt::format("serving under {} is not simulated yet", called(autoscaler)),
        "autoscaler: cluster_autoscaler");
  if (pool.provisioning != ProvisioningModel::standard)
    add(problems, file, path + ".provisioning",
        fmt::format("serving on nodes of {} is not simulated yet", to_text(pool.provisioning)),
        "provisioning: standard");
  if (pool.pricing == CapacityType::reserved)
    add(problems, file, path + ".pricing", "serving on reserved nodes is not simulated yet",
        "pricing: on_demand");
}

void add_warnings(ServingPlan& plan, const Scenario& scenario) {
  std::vector<std::string>& warnings = plan.origin.warnings;
  const DisruptionsSpec& d = scenario.disruptions;
  const bool spot = plan.pool().pricing == CapacityType::spot;
  if (d.maintenance || d.failures || (d.preemption && !spot))
    warnings.emplace_back(spot ? "maintenance and failures do nothing to the service: of its nodes "
                                 "only the provider takes some back"
                               : "disruptions do nothing to the service: no node under it fails or "
                                 "is taken away");
  if (spot && plan.cluster.shortage.on)
    warnings.emplace_back(
        "the service gets a new spot node whenever it asks for one: shortages are the training's");
  if (trains(scenario) && scenario.prices && !scenario.prices->reserved.empty())
    warnings.emplace_back(
        "reservations are the training's: the service pays the price of its pool for each node");
}

}  // namespace

double ServingPlan::rate_at(Seconds since_start) const {
  if (requests_per_second.size() == 1) return requests_per_second.front();
  const double hour = std::floor((starts_at + since_start).count() / kHour);
  return requests_per_second[std::size_t(std::fmod(hour, double(kHoursADay)))];
}

double ServingPlan::rate_mean() const {
  return std::accumulate(requests_per_second.begin(), requests_per_second.end(), 0.0) /
         double(requests_per_second.size());
}

const PoolSpec* serving_pool(const Scenario& scenario) {
  const std::string& named = scenario.serving->pool;
  const PoolSpec* found = nullptr;
  for (const PoolSpec& pool : scenario.cluster.pools) {
    if (pool.role != Role::inference || (!named.empty() && pool.name != named)) continue;
    if (found != nullptr) return nullptr;
    found = &pool;
  }
  return found;
}

bool trains(const Scenario& scenario) {
  return scenario.workload || !scenario.jobs.empty() || scenario.of_queue();
}

ScenarioFile without_serving(const ScenarioFile& file) {
  if (!file.scenario.serving) return file;
  ScenarioFile alone = file;
  Scenario& s = alone.scenario;
  s.serving.reset();
  std::erase_if(s.cluster.pools, [](const PoolSpec& pool) { return pool.role == Role::inference; });
  return alone;
}

Expected<ServingPlan> make_serving_plan(const ScenarioFile& file, const Catalog& catalog) {
  Problems problems;
  const PoolSpec* pool = serving_pool(file.scenario);
  if (pool == nullptr) {
    report_no_pool(file, problems);
    return tl::unexpected(std::move(problems));
  }
  refuse_what_is_not_simulated(file, *pool, problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  auto replicas =
      planning::plan_of_replicas(file_of_serving(file, *pool), use_of(file.scenario), catalog);
  if (!replicas) return tl::unexpected(std::move(replicas.error()));

  const ServingSpec& spec = *file.scenario.serving;
  ServingPlan plan;
  plan.model = std::move(replicas->model);
  plan.precision = replicas->precision;
  plan.origin = std::move(replicas->origin);
  plan.cluster = std::move(replicas->cluster);
  add_warnings(plan, file.scenario);
  plan.requests_per_second = spec.requests_per_second;
  plan.arrivals = spec.arrivals;
  plan.batch_max = spec.batch.max;
  plan.batch_wait = spec.batch.wait;
  resolve_replicas(plan, spec);
  plan.routing = spec.routing;
  plan.queue_limit = spec.queue_limit;
  plan.start_up = spec.start_up;
  plan.clients = spec.clients;
  plan.overhead_request = spec.overhead.request;
  plan.overhead_batch = spec.overhead.batch;
  plan.overhead_latency = spec.overhead.latency;
  plan.batch_times.assign(spec.batch.times.begin(), spec.batch.times.end());
  plan.measured = spec.stack == kMeasuredStack;
  if (plan.measured && plan.batch_times.empty() &&
      (plan.overhead_batch + plan.overhead_request).count() <= 0)
    add(problems, file, "serving.stack", "stack measured without an overhead: nothing takes time",
        "overhead: {request: 300us, batch: 1ms} or batch: {times: {1: 2ms, 8: 7ms}}, as `reckon "
        "calibrate` writes them from the metrics of a server");
  const bool by_hour = plan.requests_per_second.size() > 1;
  plan.period = spec.period.value_or(Seconds{by_hour ? kHoursADay * kHour : kHour});
  if (file.scenario.start) {
    const auto day = std::chrono::floor<std::chrono::days>(*file.scenario.start);
    plan.starts_at = *file.scenario.start - day;
  }
  if (!spec.goal.empty()) plan.goal = parse_expectation(spec.goal).value();
  plan.alone = !trains(file.scenario);
  check_capacity(file, plan, problems);
  check_target(file, plan, problems);
  check_size(file, plan, problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return plan;
}

}  // namespace reckon
