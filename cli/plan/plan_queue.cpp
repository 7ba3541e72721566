#include "cli/plan/plan_queue.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "report/queue/nodes.h"
#include "sim/queue/fewest_nodes.h"
#include "sim/scenario/resolve/pricing.h"

namespace reckon::cli {
namespace {

Expectation limit_of(const PlanOptions& options) {
  if (options.limit.empty())
    throw UsageError(
        "the jobs share a cluster: --limit says what its nodes have to keep, such as --limit "
        "'p95(wait) <= 1h'");
  auto limit = parse_expectation(options.limit);
  if (!limit) throw UsageError(fmt::format("--limit '{}': {}", options.limit, limit.error()));
  if (!is_limit_of_nodes(*limit))
    throw UsageError(fmt::format(
        "--limit '{}' is no upper limit of wait, jct, slowdown or makespan", options.limit));
  return std::move(*limit);
}

/// That of --pool, or the one with the most accelerators.
const PoolSpec& pool_of(const PlanOptions& options, const Scenario& scenario) {
  const auto& pools = scenario.cluster.pools;
  const auto gpus = [](const PoolSpec& pool) {
    return pool.accelerator ? pool.nodes.initial * pool.accelerator->count : 0;
  };
  auto found = std::max_element(pools.begin(), pools.end(),
                                [&](const auto& a, const auto& b) { return gpus(a) < gpus(b); });
  if (!options.pool.empty())
    found = std::find_if(pools.begin(), pools.end(),
                         [&](const PoolSpec& pool) { return pool.name == options.pool; });
  if (found == pools.end()) {
    if (pools.empty())
      throw UsageError("the nodes are a list: 'reckon plan' varies a pool of cluster.pools");
    std::vector<std::string> names;
    for (const PoolSpec& pool : pools) names.push_back(pool.name);
    throw UsageError(fmt::format("--pool {}: the cluster has no such pool; it has: {}",
                                 options.pool, fmt::join(names, ", ")));
  }
  return *found;
}

constexpr double kSecondsOfWeek = 7 * 86'400.0;

/// A node's week, in the currency of the scenario's prices; nullopt: its machine has no price.
std::optional<double> cost_of_week(const PoolSpec& pool, const std::optional<PricesSpec>& prices) {
  const auto* machine = std::get_if<MachineInline>(&pool.machine);
  if (machine == nullptr || (!machine->price && !machine->purchase && !machine->tariff))
    return std::nullopt;
  double usd_per_second = 0;
  const auto add = [&](const std::optional<MoneyText>& money, double factor) {
    if (!money) return true;
    const auto usd = planning::to_usd_rate({money->amount * factor, money->currency}, prices);
    if (usd) usd_per_second += usd->v;
    return usd.has_value();
  };
  const double written_off = machine->amortised_over ? 1 / machine->amortised_over->count() : 0;
  if (!add(machine->price, 1) || !add(machine->purchase, written_off) ||
      !add(machine->tariff, machine->power_watts))
    return std::nullopt;
  return usd_per_second * kSecondsOfWeek * (prices ? prices->usd_rate.value_or(1) : 1);
}

/// Orders that need no more than the list, besides that of the scenario.
std::vector<SchedulingPolicy> other_policies(SchedulingPolicy own) {
  using P = SchedulingPolicy;
  if (own != P::fifo && own != P::easy_backfill && own != P::sjf) return {};
  std::vector<P> others{P::fifo, P::easy_backfill, P::sjf};
  std::erase(others, own);
  return others;
}

}  // namespace

Expected<int> answer_nodes(const PlanOptions& options, const ScenarioFile& file,
                           const LoadedCatalog& catalog) {
  const Expectation limit = limit_of(options);
  const PoolSpec& pool = pool_of(options, file.scenario);
  ProgressLine line;
  const auto show = line.text_callback();
  const auto answer_with = [&](const std::string& what,
                               std::string change) -> Expected<TraceResult> {
    if (show) show(what);
    ScenarioChanges changes = options;
    changes.overrides.push_back(std::move(change));
    auto loaded = load_all(options.files.front(), changes, catalog);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    return answer_trace(std::move(*loaded->trace), options);
  };
  auto found = fewest_nodes(pool.name, pool.nodes.initial, limit, [&](int nodes) {
    return answer_with(fmt::format("{} nodes of {}", nodes, pool.name),
                       fmt::format("cluster.pools.{}.nodes={}", pool.name, nodes));
  });
  if (!found) return tl::unexpected(found.error());
  for (const SchedulingPolicy policy : other_policies(file.scenario.cluster.scheduler->policy)) {
    const auto result = answer_with(fmt::format("policy {}", to_text(policy)),
                                    fmt::format("cluster.scheduler.policy={}", to_text(policy)));
    if (!result) return tl::unexpected(result.error());
    const auto value = value_of(limit, *result);
    found->policies.push_back(
        {policy, value, value && holds(*value, limit.comparison, limit.value)});
  }
  if (file.scenario.prices) found->currency = file.scenario.prices->currency;
  found->cost_of_week = cost_of_week(pool, file.scenario.prices);
  print(options.format == OutputFormat::json ? nodes_json(*found) : nodes_table(*found));
  return found->fewest ? kDone : kAnswerIsNo;
}

}  // namespace reckon::cli
