#include "cli/plan/plan_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/command.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "report/memo/memo.h"
#include "report/queue/nodes.h"
#include "sim/queue/fewest_nodes.h"
#include "sim/queue/queue_costs.h"

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

void refuse_options_of_one_job(const PlanOptions& options) {
  refuse_given({{"fewest", options.fewest},
                {"baseline", !options.baseline.empty()},
                {"lock", options.lock},
                {"svg", !options.svg.empty()},
                {"out", !options.out.empty()},
                {"plans", options.plans.has_value()}},
               [](const char* name) {
                 return fmt::format(
                     "--{} plans one job, and the jobs of this scenario share a cluster", name);
               });
}

/// That of --pool, or the one with the most accelerators.
const PoolSpec& varied_pool(const PlanOptions& options, const Scenario& scenario) {
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
    if (pools.empty() && scenario.cluster.autoscaler == AutoscalerKind::karpenter)
      throw UsageError("Karpenter makes the nodes: 'reckon plan' varies a pool of cluster.pools");
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
  const auto usd = node_rates(pool, prices).usd_per_second;
  if (!usd) return std::nullopt;
  return *usd * kSecondsOfWeek * (prices ? prices->usd_rate.value_or(1) : 1);
}

/// Of all nodes; nullopt: some have no price.
std::optional<double> cost_of_all(const Scenario& scenario) {
  double cost = 0;
  for (const PoolSpec& pool : scenario.cluster.pools) {
    const auto each = cost_of_week(pool, scenario.prices);
    if (!each) return std::nullopt;
    cost += *each * pool.nodes.initial;
  }
  return cost;
}

/// With what an overflow costs, which is nothing where there is none; nullopt: unknown.
std::optional<double> cost_with_overflow(const Scenario& scenario, const TraceResult& result) {
  const auto own = cost_of_all(scenario);
  if (!own || !result.overflow_jobs) return own;
  if (!result.overflow_usd || result.makespan_seconds.value_or(0) <= 0) return std::nullopt;
  return *own + *result.overflow_usd / *result.makespan_seconds * kSecondsOfWeek *
                    (scenario.prices ? scenario.prices->usd_rate.value_or(1) : 1);
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
  refuse_options_of_one_job(options);
  const Expectation limit = limit_of(options);
  const PoolSpec& pool = varied_pool(options, file.scenario);
  ProgressLine line;
  const auto show = line.text_callback();
  const auto load_with = [&](const std::string& change) {
    ScenarioChanges changes = options;
    // Several of one --try are changes that belong together.
    constexpr std::string_view kAnd = " and ";
    std::string_view rest = change;
    for (std::size_t end = 0; (end = rest.find(kAnd)) != rest.npos;
         rest.remove_prefix(end + kAnd.size()))
      changes.overrides.emplace_back(rest.substr(0, end));
    changes.overrides.emplace_back(rest);
    return load_all(options.files.front(), changes, catalog);
  };
  auto found =
      fewest_nodes(pool.name, pool.nodes.initial, limit, [&](int nodes) -> Expected<TraceResult> {
        if (show) show(fmt::format("{} nodes of {}", nodes, pool.name));
        auto loaded = load_with(fmt::format("cluster.pools.{}.nodes={}", pool.name, nodes));
        if (!loaded) return tl::unexpected(std::move(loaded.error()));
        return answer_trace(std::move(*loaded->trace), options);
      });
  if (!found) return tl::unexpected(found.error());
  const auto try_change = [&](const std::string& change,
                              std::optional<SchedulingPolicy> policy) -> Expected<void> {
    auto loaded = load_with(change);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    if (show) show(change);
    const TraceResult result = answer_trace(std::move(*loaded->trace), options);
    const auto value = value_of(limit, result);
    found->changes.push_back({change, policy, value,
                              value && holds(*value, limit.comparison, limit.value),
                              cost_with_overflow(loaded->file.scenario, result)});
    return {};
  };
  for (const SchedulingPolicy policy : other_policies(file.scenario.cluster.scheduler->policy))
    if (auto done = try_change(fmt::format("cluster.scheduler.policy={}", to_text(policy)), policy);
        !done)
      return tl::unexpected(std::move(done.error()));
  for (const std::string& change : options.tries)
    if (auto done = try_change(change, std::nullopt); !done)
      return tl::unexpected(std::move(done.error()));
  found->cost_now = cost_of_all(file.scenario);
  if (file.scenario.prices) found->currency = file.scenario.prices->currency;
  found->cost_of_week = cost_of_week(pool, file.scenario.prices);
  if (!options.memo.empty())
    write_file(options.memo, nodes_memo(*found, question_of(read_text(options.files.front()))));
  print(options.format == OutputFormat::json ? nodes_json(*found) : nodes_table(*found));
  return found->fewest ? kDone : kAnswerIsNo;
}

}  // namespace reckon::cli
