#include "cli/plan/plan_queue.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "report/queue/nodes.h"
#include "sim/queue/fewest_nodes.h"

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
  if (found == pools.end())
    throw UsageError(options.pool.empty()
                         ? "the nodes are a list: 'reckon plan' varies a pool of cluster.pools"
                         : fmt::format("--pool {}: the cluster has no such pool", options.pool));
  return *found;
}

}  // namespace

Expected<int> answer_nodes(const PlanOptions& options, const ScenarioFile& file,
                           const LoadedCatalog& catalog) {
  const Expectation limit = limit_of(options);
  const PoolSpec& pool = pool_of(options, file.scenario);
  ProgressLine line;
  const auto show = line.text_callback();
  const auto found =
      fewest_nodes(pool.name, pool.nodes.initial, limit, [&](int nodes) -> Expected<TraceResult> {
        if (show) show(fmt::format("{} nodes of {}", nodes, pool.name));
        ScenarioChanges changes = options;
        changes.overrides.push_back(fmt::format("cluster.pools.{}.nodes={}", pool.name, nodes));
        auto loaded = load_all(options.files.front(), changes, catalog);
        if (!loaded) return tl::unexpected(std::move(loaded.error()));
        return answer_trace(std::move(*loaded->trace), options);
      });
  if (!found) return tl::unexpected(found.error());
  print(options.format == OutputFormat::json ? nodes_json(*found) : nodes_table(*found));
  return found->fewest ? kDone : kAnswerIsNo;
}

}  // namespace reckon::cli
