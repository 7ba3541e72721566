#include "cli/plan/plan_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
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
    if (pools.empty())
      throw UsageError("the nodes are a list: 'reckon plan' varies a pool of cluster.pools");
    std::vector<std::string> names;
    for (const PoolSpec& pool : pools) names.push_back(pool.name);
    throw UsageError(fmt::format("--pool {}: the cluster has no such pool; it has: {}",
                                 options.pool, fmt::join(names, ", ")));
  }
  return *found;
}

/// What varies: nodes of a pool, or GPUs of a NodePool's limits.
struct VariedNumber {
  std::string pool;
  Varied varied = Varied::nodes_of_pool;
  std::optional<int> now;                  // nullopt: no limit
  std::function<std::string(int)> change;  // as of --set
};

VariedNumber nodes_of(const PoolSpec& pool) {
  return {pool.name, Varied::nodes_of_pool, pool.nodes.initial, [name = pool.name](int nodes) {
            return fmt::format("cluster.pools.{}.nodes={}", name, nodes);
          }};
}

/// Those of --pool, or of the only NodePool.
VariedNumber gpus_of_node_pool(const PlanOptions& options, const KarpenterSpec& karpenter) {
  std::vector<std::string> names;
  for (const NodePoolSpec& node_pool : karpenter.node_pools) names.push_back(node_pool.name);
  if (options.pool.empty() && names.size() > 1)
    throw UsageError(fmt::format("--pool says whose limit of GPUs varies; NodePools: {}",
                                 fmt::join(names, ", ")));
  const auto found = options.pool.empty() ? karpenter.node_pools.begin()
                                          : std::ranges::find(karpenter.node_pools, options.pool,
                                                              &NodePoolSpec::name);
  if (found == karpenter.node_pools.end())
    throw UsageError(fmt::format("--pool {}: there is no such NodePool; there are: {}",
                                 options.pool, fmt::join(names, ", ")));
  // The key has a dot, so the limits are set together.
  std::string others;
  const NodePoolLimits& limits = found->limits;
  if (limits.cpu) others += fmt::format(", cpu: {}", *limits.cpu);
  if (limits.memory)
    others += fmt::format(", memory: {}B", static_cast<std::int64_t>(limits.memory->v));
  if (limits.nodes) others += fmt::format(", nodes: {}", *limits.nodes);
  return {found->name, Varied::gpus_of_node_pool, limits.gpus,
          [name = found->name, others](int gpus) {
            return fmt::format("cluster.karpenter.nodePools.{}.limits={{nvidia.com/gpu: {}{}}}",
                               name, gpus, others);
          }};
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

/// With what an overflow costs, which is nothing where there is none, or of what Karpenter made;
/// nullopt: unknown.
std::optional<double> cost_with(const Scenario& scenario, const TraceResult& result) {
  if (result.karpenter) {
    if (!result.cost_usd || result.makespan_seconds.value_or(0) <= 0) return std::nullopt;
    return *result.cost_usd / *result.makespan_seconds * kSecondsOfWeek * result.usd_rate;
  }
  const auto own = cost_of_all(scenario);
  if (!own || !result.overflow_jobs) return own;
  if (!result.overflow_usd || result.makespan_seconds.value_or(0) <= 0) return std::nullopt;
  return *own + *result.overflow_usd / *result.makespan_seconds * kSecondsOfWeek *
                    (scenario.prices ? scenario.prices->usd_rate.value_or(1) : 1);
}

/// Of Karpenter, what costs nobody a machine: to move running pods or not, and the fullest or the
/// emptiest node for a pod.
std::vector<std::string> other_settings(const Scenario& scenario) {
  if (scenario.cluster.autoscaler != AutoscalerKind::karpenter) return {};
  const auto& kubernetes = scenario.cluster.scheduler->kubernetes;
  const bool packs = kubernetes && kubernetes->scoring == ScoringStrategy::most_allocated;
  return {
      fmt::format("cluster.karpenter.doNotDisrupt={}", !scenario.cluster.karpenter->do_not_disrupt),
      fmt::format("cluster.scheduler.kubernetes.scoringStrategy={}",
                  packs ? "LeastAllocated" : "MostAllocated")};
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
  const Scenario& scenario = file.scenario;
  const bool karpenter = scenario.cluster.autoscaler == AutoscalerKind::karpenter;
  const PoolSpec* const pool = karpenter ? nullptr : &varied_pool(options, scenario);
  const VariedNumber varied =
      karpenter ? gpus_of_node_pool(options, *scenario.cluster.karpenter) : nodes_of(*pool);
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
  std::optional<TraceResult> as_is;
  if (karpenter) {
    auto loaded = load_all(options.files.front(), options, catalog);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    as_is = answer_trace(std::move(*loaded->trace), options);
  }
  const int now = varied.now ? *varied.now : static_cast<int>(as_is->gpus);
  auto found = fewest_nodes(varied.pool, now, limit, [&](int nodes) -> Expected<TraceResult> {
    if (show) show(fmt::format("{}: {}", varied.pool, nodes));
    auto loaded = load_with(varied.change(nodes));
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    return answer_trace(std::move(*loaded->trace), options);
  });
  if (!found) return tl::unexpected(found.error());
  found->varied = varied.varied;
  found->limited_now = varied.now.has_value();
  const auto try_change = [&](const std::string& change,
                              std::optional<SchedulingPolicy> policy) -> Expected<void> {
    auto loaded = load_with(change);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    if (show) show(change);
    const TraceResult result = answer_trace(std::move(*loaded->trace), options);
    const auto value = value_of(limit, result);
    found->changes.push_back({change, policy, value,
                              value && holds(*value, limit.comparison, limit.value),
                              cost_with(loaded->file.scenario, result)});
    return {};
  };
  for (const SchedulingPolicy policy : other_policies(file.scenario.cluster.scheduler->policy))
    if (auto done = try_change(fmt::format("cluster.scheduler.policy={}", to_text(policy)), policy);
        !done)
      return tl::unexpected(std::move(done.error()));
  std::vector<std::string> changes = other_settings(scenario);
  changes.insert(changes.end(), options.tries.begin(), options.tries.end());
  for (const std::string& change : changes)
    if (auto done = try_change(change, std::nullopt); !done)
      return tl::unexpected(std::move(done.error()));
  found->cost_now = as_is ? cost_with(scenario, *as_is) : cost_of_all(scenario);
  if (karpenter)
    for (NodesTried& tried : found->tried) tried.cost_of_week = cost_with(scenario, tried.result);
  if (file.scenario.prices) found->currency = file.scenario.prices->currency;
  if (pool != nullptr) found->cost_of_week = cost_of_week(*pool, file.scenario.prices);
  if (!options.memo.empty())
    write_file(options.memo, nodes_memo(*found, question_of(read_text(options.files.front()))));
  print(options.format == OutputFormat::json ? nodes_json(*found) : nodes_table(*found));
  return found->fewest ? kDone : kAnswerIsNo;
}

}  // namespace reckon::cli
