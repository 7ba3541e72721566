#include "planner/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/accuracy/plan_evidence.h"
#include "sim/scenario/yaml/fields.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::planner {

double held_against(const Limit& limit, const Quantiles& mean, const std::vector<double>& values) {
  return limit.probability ? quantile(values, *limit.probability) : mean.mean;
}

double held_against(const Limit& limit, const std::vector<double>& values) {
  return limit.probability ? quantile(values, *limit.probability) : mean_of(values);
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

Expected<ScenarioFile> read(const Base& base) {
  auto file = parse_scenario(base.text, base.name, base.overrides, base.layers);
  if (!file || !base.complete) return file;
  Diagnostics unread = base.complete(*file);
  if (!unread.empty()) return tl::unexpected(std::move(unread));
  return file;
}

const PoolSpec& worker_pool(const Scenario& scenario) {
  for (const PoolSpec& pool : scenario.cluster.pools)
    if (pool.role == Role::worker || (!pool.role && (pool.accelerator || pool.tpu))) return pool;
  for (const PoolSpec& pool : scenario.cluster.pools)
    if (!pool.role) return pool;
  return scenario.cluster.pools.front();
}

const PoolSpec* server_pool(const Scenario& scenario) {
  for (const PoolSpec& pool : scenario.cluster.pools)
    if (pool.role == Role::parameter_server) return &pool;
  if (!scenario.workload || !traits_of(scenario.workload->strategy.kind).servers) return nullptr;
  // As make_plan gives roles: beside workers with accelerators a pool without them.
  const PoolSpec& workers = worker_pool(scenario);
  for (const PoolSpec& pool : scenario.cluster.pools)
    if (!pool.role && &pool != &workers && !pool.accelerator && !pool.tpu) return &pool;
  return nullptr;
}

Expected<Plan> planned(const Base& base, const ScenarioFile& file, const Catalog& catalog) {
  auto plan = make_plan(file, catalog);
  if (plan && base.evidence != nullptr) set_residual(*plan, *base.evidence);
  return plan;
}

Expected<Plan> plan_with(const Question& question, std::span<const Change> changes,
                         const Catalog& catalog) {
  ScenarioFile file = question.file;
  apply_changes(changes, file.scenario);
  for (const PoolSpec& pool : file.scenario.cluster.pools)
    if (pool.nodes.max > kMostNodes)
      return tl::unexpected(
          Diagnostics{{Severity::error, file.places.find("cluster.pools." + pool.name),
                       fmt::format("pool '{}' has {} nodes, but a pool has at most {}", pool.name,
                                   format_count(pool.nodes.max), format_count(kMostNodes)),
                       ""}});
  return planned(question.base, file, catalog);
}

bool fits(const Question& question, const MemoryEstimate& memory) {
  return memory.fits_at(kRiskOfAPlan) &&
         (!question.memory || memory.required() <= *question.memory) &&
         (!question.memory_share || memory.required() <= memory.available * *question.memory_share);
}

bool colocates_servers(const Question& question) {
  const StrategySpec& strategy = question.file.scenario.workload->strategy;
  return traits_of(strategy.kind).servers && strategy.colocated.value_or(false);
}

int PoolBounds::least_nodes(int gang) const {
  constexpr double kRounding = 1e-9;
  return int(std::ceil(least * gang - kRounding));
}
int PoolBounds::most_nodes(int gang) const {
  constexpr double kRounding = 1e-9;
  return int(std::ceil(most * gang - kRounding));
}

bool says_replications(const Question& question) {
  const auto at = [&](const char* path) { return question.file.places.find(path); };
  const bool in_file = at("forecast.replications") != at("forecast");
  return in_file || std::ranges::any_of(question.base.overrides, [](const std::string& text) {
           return text.starts_with("forecast.replications=");
         });
}

SearchedKeys searched_keys(const Question& question) {
  const Freedom& may = question.may;
  SearchedKeys keys;
  const auto key = [&](const char* name, bool free) {
    (free ? keys.searched : keys.held).emplace_back(name);
  };
  // Of a list that is empty, any value may be taken, where hardware is searched at all.
  const auto choice = [](const auto& list) { return list.size() != 1; };
  key("provider", may.hardware && choice(may.providers));
  key("accelerator", may.hardware && choice(may.accelerators));
  key("machine", may.hardware && choice(may.machines));
  key("region", may.hardware && choice(may.regions));
  key("zone", may.zone && choice(may.zones));
  key("nodes", may.nodes.size() > 1);
  key("pricing", may.pricing.size() > 1);
  key("base", !may.bases.empty());
  key("fallback", !may.fallbacks.empty());
  key("autoscaling", may.bounds.size() > 1);
  key("parameter_servers", may.parameter_servers.size() > 1);
  key("parameter_server_machine", may.server_machines.size() > 1);
  key("strategy", may.kinds.size() > 1);
  key("layout", may.layouts);
  key("recompute", may.recompute.size() > 1);
  key("precision", may.precision);
  key("global_batch", may.most_global_batch > 0);
  key("checkpoint_interval", may.save_intervals.size() > 1);
  key("checkpoint_storage", may.checkpoint_storages.size() > 1);
  key("restart", may.restarts.size() > 1);
  return keys;
}

}  // namespace reckon::planner
