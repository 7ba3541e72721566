#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "sim/scenario/artifact/json.h"
#include "sim/scenario/artifact/json_kinds.h"
#include "sim/scenario/cron_schedule.h"

namespace reckon::artifact {
namespace {

class Checker {
 public:
  Checker(const Plan& plan, const std::string& file) : plan_(plan), file_(file) {}

  Diagnostics run() {
    if (plan_.jobs.empty()) wrong("the plan has no job");
    for (const PlannedWorkload& job : plan_.jobs) check_job(job);
    for (const PlannedPool& pool : plan_.pools) check_pool(pool);
    if (plan_.karpenter)
      for (const NodePoolSpec& node_pool : plan_.karpenter->node_pools) check_node_pool(node_pool);
    if (plan_.cluster_autoscaler)
      for (const ExpanderPriority& row : plan_.cluster_autoscaler->priorities)
        for (const std::string& group : row.groups)
          if (!is_regular_expression(group))
            wrong(fmt::format("'{}' is no regular expression", group));
    check_sources(plan_);
    return std::move(problems_);
  }

 private:
  void wrong(std::string what) {
    problems_.push_back({.at = {.file = file_},
                         .what = std::move(what),
                         .hint = "write the file again from its scenario"});
  }

  void check_job(const PlannedWorkload& job) {
    if (job.same_as && *job.same_as >= plan_.jobs.size())
      wrong(fmt::format("job '{}' repeats a job that is not there", job.name));
    if (job.model.layers().empty()) wrong(fmt::format("job '{}' has no network", job.name));
    if (job.global_batch < 1 || job.strategy.layout.micro_batch < 1 || job.steps < 0)
      wrong(fmt::format("job '{}' has a batch without samples, or fewer than no steps", job.name));
    const PlannedStrategy& s = job.strategy;
    const bool whole = s.workers >= 1 && s.accelerators_per_worker >= 0 && s.server_count() >= 0 &&
                       s.layout.tensor >= 1 && s.layout.pipeline >= 1 && s.layout.context >= 1 &&
                       s.layout.expert >= 1 && s.layout.interleave >= 1;
    if (traits_of(s.kind).servers != s.servers.has_value())
      wrong(fmt::format("job '{}' has parameter servers, or has none, against its strategy",
                        job.name));
    if (!whole)
      wrong(fmt::format("the strategy of job '{}' has a count below its least", job.name));
  }

  void check_pool(const PlannedPool& pool) {
    if (pool.fallback_for && *pool.fallback_for >= plan_.pools.size())
      wrong(fmt::format("pool '{}' is the fallback of a pool that does not exist", pool.name));
    const std::size_t node_pools = plan_.karpenter ? plan_.karpenter->node_pools.size() : 0;
    if (pool.node_pool && *pool.node_pool >= node_pools)
      wrong(fmt::format("pool '{}' is of a NodePool that does not exist", pool.name));
    if (pool.rank < 0) wrong(fmt::format("pool '{}' has a rank before the first", pool.name));
    if (pool.nodes_initial < 0 || pool.nodes_min < 0 || pool.nodes_max < 0 ||
        pool.accelerators_per_node < 0)
      wrong(fmt::format("pool '{}' has fewer than no nodes", pool.name));
    if (!pool.measured_rates) return;
    const WorkerRates& rates = *pool.measured_rates;
    if (rates.threads < 1 || rates.streams.passes.empty() || !is_grid(rates.products) ||
        !is_grid(rates.each))
      wrong(fmt::format("the measured rates of pool '{}' are no tables", pool.name));
  }

  void check_node_pool(const NodePoolSpec& node_pool) {
    for (const DisruptionBudget& budget : node_pool.budgets)
      if (!budget.schedule.empty() && (!plan_.begins || !CronSchedule::parse(budget.schedule)))
        wrong(fmt::format("NodePool '{}' has a budget with a schedule that cannot be followed",
                          node_pool.name));
  }

  static bool is_grid(const ProductTimes& table) {
    constexpr std::size_t kLargest = 1000;
    const std::size_t n = table.extents.size();
    return n >= 1 && n <= kLargest && table.times.size() == n * n * n;
  }

  /// Every source that a Fact, or a law, names.
  template <class T>
  void check_sources(const T& value) {
    if constexpr (std::is_same_v<T, SourceId>) {
      const auto source = static_cast<std::size_t>(value);
      if (source > 0 && source >= plan_.sources.size() && !std::exchange(unsourced_, true))
        wrong(fmt::format("a number has source {}, of {}", source, plan_.sources.size()));
    } else if constexpr (kIs<T, Fact>) {
      check_sources(value.source);
    } else if constexpr (HasFields<T>) {
      each_field(value, [&](const char*, const auto& field) { check_sources(field); });
    } else if constexpr (kIs<T, std::optional> || kIs<T, std::shared_ptr>) {
      if (value) check_sources(*value);
    } else if constexpr (kIs<T, std::vector> || kIsArray<T>) {
      for (const auto& item : value) check_sources(item);
    }
  }

  const Plan& plan_;
  const std::string& file_;
  bool unsourced_ = false;
  Diagnostics problems_;
};

}  // namespace

Diagnostics contradictions_of(const RunArtifact& artifact, const std::string& file) {
  return Checker(artifact.plan, file).run();
}

}  // namespace reckon::artifact
