#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "sim/scenario/layout_rules.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/training/workers.h"

// A pipeline whose stages run on different accelerators: which stage is where, and how much of the
// model it has.
namespace reckon::planning {
namespace {

constexpr const char* kStages = "workload.strategy.stages";

/// "pool 'a' (T4)".
std::string pool_words(const PlannedPool& pool) {
  return fmt::format("pool '{}' ({})", pool.name,
                     pool.accelerator ? pool.accelerator->name : "no accelerators");
}

/// Index of the computing pool of that name; nullopt: there is none.
std::optional<std::size_t> computing_pool(const Plan& plan, const std::string& name) {
  for (std::size_t k = 0; k < plan.pools.size(); ++k)
    if (plan.pools[k].name == name && computes(plan, plan.pools[k])) return k;
  return std::nullopt;
}

void resolve_pools(Draft& draft, PlannedWorkload& job, const std::vector<StageSpec>& stages) {
  for (const StageSpec& stage : stages) {
    std::vector<std::size_t>& on = job.stage_pools.emplace_back();
    for (const std::string& name : stage.pools) {
      if (const auto pool = computing_pool(draft.plan, name)) {
        on.push_back(*pool);
        continue;
      }
      std::vector<std::string> names;
      for (const PlannedPool* pool : computing_pools(draft.plan)) names.push_back(pool->name);
      draft.error(kStages, fmt::format("no pool '{}' has workers", name),
                  fmt::format("one of: {}", fmt::join(names, ", ")));
    }
  }
}

/// Every rank has an accelerator of a pool of its stage, or without accelerators a worker: each
/// pool has as many as its stages take, where they are its own, and all pools together as many as
/// the job.
void check_counts(Draft& draft, const PlannedWorkload& job) {
  const int ranks = job.strategy.accelerators() / job.strategy.layout.pipeline;  // of a stage
  const int each = std::max(1, job.strategy.accelerators_per_worker);
  std::vector<int> takes(draft.plan.pools.size(), 0);
  std::vector<bool> shared(draft.plan.pools.size(), false), named(draft.plan.pools.size(), false);
  for (const auto& on : job.stage_pools)
    for (const std::size_t pool : on) {
      named[pool] = true;
      if (on.size() == 1)
        takes[pool] += ranks;
      else
        shared[pool] = true;
    }
  for (std::size_t k = 0; k < takes.size(); ++k) {
    const PlannedPool& pool = draft.plan.pools[k];
    if (!computes(draft.plan, pool)) continue;
    if (!named[k]) {
      draft.error(kStages, fmt::format("no stage runs on {}", pool_words(pool)),
                  "name it in a stage, or leave the pool out");
      continue;
    }
    const int has = each * workers_on(pool.nodes_initial, pool.accelerators_per_node,
                                      job.strategy.accelerators_per_worker);
    if (takes[k] > has || (takes[k] < has && !shared[k]))
      draft.error(
          kStages,
          fmt::format("the stages on {} take {} {}, its first nodes have {}", pool_words(pool),
                      takes[k], pool.accelerator ? "accelerators" : "workers", has),
          fmt::format("a stage has data x tensor x context = {}", ranks));
  }
}

void resolve_blocks(Draft& draft, PlannedWorkload& job, const std::vector<StageSpec>& stages) {
  const auto given = std::ranges::count_if(stages, [](const StageSpec& s) { return !!s.blocks; });
  if (given == 0) return;
  if (given != std::ssize(stages)) {
    draft.error(kStages, "some stages have blocks and some have none",
                "say them for all stages, or for none: as even as can be");
    return;
  }
  for (const StageSpec& stage : stages) job.stage_blocks.push_back(*stage.blocks);
  const int sum = std::accumulate(job.stage_blocks.begin(), job.stage_blocks.end(), 0);
  if (const LayoutLimits limits(job.model); sum != limits.blocks)
    draft.error(kStages, fmt::format("the stages have {} blocks, model {} has {}", sum,
                                     limits.model, limits.blocks));
}

}  // namespace

void resolve_stages(Draft& draft, PlannedWorkload& job) {
  job.stage_blocks.clear();
  job.stage_pools.clear();
  const std::vector<StageSpec>& stages = draft.scenario().workload->strategy.stages;
  if (stages.empty()) return;
  const Layout& layout = job.strategy.layout;
  if (layout.interleave > 1) {
    draft.error(kStages, "stages of an interleaved schedule cannot differ", "schedule: 1f1b");
    return;
  }
  if (std::ssize(stages) != layout.pipeline) {
    draft.error(kStages,
                fmt::format("there are {} stages, pipeline is {}", stages.size(), layout.pipeline),
                "as many as pipeline");
    return;
  }
  const std::size_t before = draft.errors.size();
  resolve_pools(draft, job, stages);
  resolve_blocks(draft, job, stages);
  if (draft.errors.size() == before) check_counts(draft, job);
}

}  // namespace reckon::planning
