#include "exchange/frameworks/launch_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exchange/refusals.h"
#include "sim/model/zoo/transformer_dimensions.h"
#include "sim/scenario/resolve/one_job.h"
#include "sim/step/network/all_reduces.h"

namespace reckon {
namespace {

Layout layout_for(const PlannedWorkload& job) {
  Layout layout = layout_of(job);
  // The programs for TPUs leave to XLA what runs beside what.
  if (!traits_of(job.strategy.kind).overlaps) layout.overlap = true;
  return layout;
}

bool nccl_has(const AllReduceAlgorithm& algorithm) { return !algorithm.nccl.variable.empty(); }

std::vector<std::string_view> all_reduces_of_nccl() {
  std::vector<std::string_view> words{to_text(AllReduceKind::automatic)};
  for (const AllReduceAlgorithm& each : all_reduces())
    if (nccl_has(each)) words.push_back(to_text(each.kind));
  return words;
}

/// What no launcher has.
void refuse_for_all(Refusals& refused, const Plan& plan, const PlannedWorkload& job) {
  const PlannedStrategy& s = job.strategy;
  if (s.servers)
    refused.add("strategy", "kind: parameter_server",
                "reckon export kubernetes --as tfjob, or kind: sharded");
  if (s.accelerators_per_worker == 0)
    refused.add("strategy", "workers on CPUs", "reckon export kubernetes");
  if (computing_pools(plan).size() > 1) {
    const bool chief =
        std::ranges::find(plan.pools, Role::chief, &PlannedPool::role) != plan.pools.end();
    if (chief)
      refused.add("cluster.pools", "a chief that computes in a pool of its own",
                  "put chief and workers into one pool");
    else
      refused.add("cluster.pools", "workers in several pools", "one pool of workers");
  }
  for (const PlannedPool& pool : plan.pools)
    if (pool.role == Role::evaluator)
      refused.add("cluster.pools." + pool.name, "a pool of evaluators", "leave the pool out");
  if (!job.stage_blocks.empty() || !job.stage_pools.empty())
    refused.add("strategy.stages", "stages that differ", "leave stages out: as even as can be");
  if (s.all_reduce != AllReduceKind::automatic && !nccl_has(all_reduce_of(s.all_reduce)))
    refused.add("strategy.all_reduce", fmt::format("all_reduce: {}", to_text(s.all_reduce)),
                fmt::format("one that NCCL has: {}", fmt::join(all_reduces_of_nccl(), ", ")));
}

std::vector<std::pair<std::string, std::string>> nccl_of(const Plan& plan,
                                                         const PlannedStrategy& strategy) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (strategy.all_reduce != AllReduceKind::automatic) {
    const NcclSetting& asked = all_reduce_of(strategy.all_reduce).nccl;
    if (!asked.variable.empty()) variables.emplace_back(asked.variable, asked.value);
  }
  // Each NIC talks to those of its own rail alone.
  if (plan.fabric.rails) variables.emplace_back("NCCL_CROSS_NIC", "0");
  return variables;
}

}  // namespace

Expected<LaunchLayout> launch_layout_of(const Plan& plan, const Places& places,
                                        const LaunchTimes& times) {
  if (auto several = why_not_one_job(plan, places, "a launcher's configuration"))
    return tl::unexpected(Diagnostics{std::move(*several)});
  const PlannedWorkload& job = plan.only_job();
  Refusals refused("a launcher's configuration", places, job.path);
  refuse_for_all(refused, plan, job);
  if (!refused.empty()) return tl::unexpected(refused.take());
  LaunchLayout l;
  l.name = plan.name;
  l.job = &job;
  l.pool = computing_pools(plan).front();
  l.layout = layout_for(job);
  // Of a TPU slice the hosts are the nodes of the launcher.
  const int hosts = l.pool->slice ? l.pool->slice->hosts : 1;
  const int chips = l.pool->slice ? l.pool->slice->chips / hosts : l.pool->accelerators_per_node;
  const int accelerators = job.strategy.accelerators();
  l.accelerators_per_node = std::min(chips, accelerators);
  l.nodes = (accelerators + l.accelerators_per_node - 1) / l.accelerators_per_node;
  if (std::int64_t{l.nodes} * l.accelerators_per_node != accelerators) {
    refused.add("strategy", fmt::format("{} accelerators on nodes of {}", accelerators, chips),
                "as many processes on every node");
    return tl::unexpected(refused.take());
  }
  l.model = transformer_dimensions_of(job.model);
  if (times.checkpoint_interval > Seconds{0} && times.step > Seconds{0})
    l.save_every =
        std::max<std::int64_t>(1, std::int64_t(std::floor(times.checkpoint_interval / times.step)));
  // The rest is for the program's end and the launcher's.
  constexpr double kRest = 30;
  l.notice = times.checkpoint_save + job.checkpoint.notice.reaction.value + Seconds{kRest};
  l.seed = plan.seed;
  l.nccl = nccl_of(plan, job.strategy);
  return l;
}

}  // namespace reckon
