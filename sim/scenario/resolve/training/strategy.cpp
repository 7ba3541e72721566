#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/training/workers.h"

// The strategy against the pools: who computes, on how many accelerators, and whether there are so
// many.
namespace reckon::planning {
namespace {

constexpr std::string_view kPath = "workload.strategy.";

std::string at(std::string_view key) { return std::string(kPath) + std::string(key); }

/// A job on different accelerators goes at the pace of the slowest; what is cut is cut for one
/// kind, but for a pipeline whose stages are said.
bool may_mix(const StrategySpec& spec) {
  const StrategyTraits& traits = traits_of(spec.kind);
  const bool whole = !traits.cuts && (traits.gang || traits.servers);
  return !spec.stages.empty() || (whole && spec.synchronous.value_or(true));
}

bool same_hardware(Draft& draft, const StrategySpec& spec,
                   const std::vector<const PlannedPool*>& pools) {
  const PlannedPool& first = *draft.plan.pool_with(Role::worker);
  for (const PlannedPool* pool : pools) {
    const bool same = pool->accelerator.has_value() == first.accelerator.has_value() &&
                      (!first.accelerator || first.accelerator->name == pool->accelerator->name);
    if (same) continue;
    if (pool->accelerator && first.accelerator && !pool->slice && may_mix(spec)) {
      if (spec.stages.empty())
        draft.warn(
            fmt::format("'{}' and '{}' have different accelerators: every step waits for the "
                        "slower one, with as many samples each",
                        first.name, pool->name));
      continue;
    }
    draft.not_yet(
        draft.path(*pool, "accelerator"),
        fmt::format("one job on different accelerators ('{}' and '{}')", first.name, pool->name),
        traits_of(spec.kind).any_degrees
            ? "strategy.stages says which stage of a pipeline runs on which pool"
            : "");
    return false;
  }
  return true;
}

bool check_kind_of_pool(Draft& draft, const StrategySpec& spec, const PlannedPool& worker) {
  const StrategyTraits& traits = traits_of(spec.kind);
  if (!traits.on_machines && !worker.slice) {
    draft.error(at("kind"),
                fmt::format("strategy {} needs a TPU slice, pool '{}' has none", to_text(spec.kind),
                            worker.name),
                "give the pool tpu: {type: ..., slice: ...} instead of a machine");
    return false;
  }
  if (worker.slice && !traits.on_slices) {
    draft.error(at("kind"),
                fmt::format("strategy {} does not run on the TPU slice of pool '{}'",
                            to_text(spec.kind), worker.name),
                "strategy: {kind: tpu}; what is too large for a chip: {kind: sharded} or {kind: "
                "model_parallel, ...}");
    return false;
  }
  if (traits.accelerated && !worker.accelerator) {
    draft.error(at("kind"),
                fmt::format("strategy {} needs accelerators, pool '{}' has none",
                            to_text(spec.kind), worker.name),
                "give the pool an accelerator, or take strategy: {kind: single}");
    return false;
  }
  if (spec.offload_optimizer.value_or(false) && !worker.accelerator) {
    draft.error(at("offload_optimizer"),
                fmt::format("the nodes of pool '{}' have no accelerators: the optimizer's state is "
                            "in the host's memory already",
                            worker.name),
                "leave offload_optimizer out");
    return false;
  }
  return true;
}

int resolve_accelerators_per_worker(Draft& draft, const StrategySpec& spec,
                                    const std::vector<const PlannedPool*>& pools) {
  int per_node = pools.front()->accelerators_per_node;
  for (const PlannedPool* pool : pools) per_node = std::min(per_node, pool->accelerators_per_node);
  const int per_worker = accelerators_per_worker(spec, per_node);
  if (per_worker > per_node || per_worker < 0 || (per_worker == 0 && per_node > 0)) {
    draft.error(at("accelerators_per_worker"),
                fmt::format("accelerators_per_worker is {}, a node has {}", per_worker, per_node),
                per_node > 0 ? fmt::format("between 1 and {}", per_node)
                             : "0: the worker computes on its CPUs");
    return -1;
  }
  if (spec.kind == StrategyKind::single && per_worker > 1) {
    draft.error(at("accelerators_per_worker"), "strategy single uses one accelerator",
                "strategy: {kind: mirrored} uses all of a node");
    return -1;
  }
  if (pools.front()->slice && per_worker != per_node) {
    draft.error(
        at("accelerators_per_worker"),
        fmt::format("strategy {} uses all {} chips of the slice", to_text(spec.kind), per_node),
        "leave accelerators_per_worker out");
    return -1;
  }
  return per_worker;
}

/// Workers of a model_parallel job whose degrees are all given: as many as the degrees fill.
std::optional<int> workers_of_degrees(const StrategySpec& spec, int per_worker) {
  if (!traits_of(spec.kind).any_degrees || !spec.data) return std::nullopt;
  const std::int64_t accelerators = std::int64_t{*spec.data} * spec.tensor.value_or(1) *
                                    spec.pipeline.value_or(1) * spec.context.value_or(1);
  const int each = std::max(1, per_worker);  // a worker on CPUs is one rank
  if (accelerators % each != 0 || accelerators / each > std::numeric_limits<int>::max())
    return std::nullopt;
  return static_cast<int>(accelerators / each);
}

/// "at most 5 nodes x 2 in p100".
std::string capacity_text(const std::vector<const PlannedPool*>& pools) {
  std::vector<std::string> words;
  for (const PlannedPool* pool : pools)
    words.push_back(pool->accelerators_per_node == 0
                        ? fmt::format("{} nodes in '{}'", pool->nodes_max, pool->name)
                        : fmt::format("{} nodes x {} accelerators in '{}'", pool->nodes_max,
                                      pool->accelerators_per_node, pool->name));
  return join(words);
}

int resolve_workers(Draft& draft, const StrategySpec& spec,
                    const std::vector<const PlannedPool*>& pools, int per_worker) {
  int initial = 0, most = 0;
  for (const PlannedPool* pool : pools) {
    initial += workers_on(pool->nodes_initial, pool->accelerators_per_node, per_worker);
    most += workers_on(pool->nodes_max, pool->accelerators_per_node, per_worker);
  }
  // Nodes that stand by are no workers' (resolve/training/restart.cpp counts them).
  const auto& restart = draft.scenario().workload->restart;
  if (const int spares = restart ? restart->spares.value_or(0) : 0; spares > 0)
    initial =
        std::max(0, initial - workers_on(spares, pools.back()->accelerators_per_node, per_worker));
  const bool one = has_one_worker(spec.kind, pools.front()->slice.has_value());
  if (one && spec.workers.value_or(1) != 1) {
    draft.error(at("workers"), fmt::format("strategy {} has one worker", to_text(spec.kind)),
                pools.front()->slice ? "one job on several TPU slices is not simulated yet"
                                     : "strategy: {kind: multi_worker_mirrored}");
    return 0;
  }
  const int workers =
      spec.workers.value_or(one ? 1 : workers_of_degrees(spec, per_worker).value_or(initial));
  if (workers < 1) {
    draft.error(spec.workers ? at("workers") : "workload.strategy",
                "the strategy has no workers: its pools start empty",
                "say how many: strategy: {workers: 3}");
    return 0;
  }
  if (workers > most && !spec.workers && workers_of_degrees(spec, per_worker)) {
    draft.error(
        "workload.strategy",
        fmt::format("data {} x tensor {} x pipeline {} x context {} are {} {}, the pools hold at "
                    "most {}",
                    *spec.data, spec.tensor.value_or(1), spec.pipeline.value_or(1),
                    spec.context.value_or(1), std::int64_t{workers} * std::max(1, per_worker),
                    per_worker > 0 ? "accelerators" : "workers",
                    std::int64_t{most} * std::max(1, per_worker)),
        fmt::format("there are {}; more nodes or smaller degrees", capacity_text(pools)));
    return 0;
  }
  if (workers > most) {
    draft.error(
        spec.workers ? at("workers") : "workload.strategy",
        fmt::format("{} {} do not fit into the pools, which hold at most {}", workers,
                    per_worker == 0 ? std::string("workers")
                                    : fmt::format("workers with {} accelerator{} each", per_worker,
                                                  per_worker == 1 ? "" : "s"),
                    most),
        fmt::format("there are {}; more nodes (or nodes.max with autoscaling) or fewer workers",
                    capacity_text(pools)));
    return 0;
  }
  const bool stand_by = restart && restart->kind == RestartKind::warm_spare;
  if (workers < initial && !stand_by)
    draft.warn(fmt::format(
        "the strategy uses {} of the {} workers that the pools' first nodes could hold; "
        "the rest is billed and idle",
        workers, initial));
  return workers;
}

void check_backup_workers(Draft& draft, const PlannedStrategy& strategy) {
  if (strategy.workers == 0 || strategy.backup_workers() < strategy.workers) return;
  draft.error(at("backup_workers"),
              fmt::format("{} backup workers of {} workers leave none whose answer counts",
                          strategy.backup_workers(), strategy.workers),
              "backup_workers are some of workers: fewer of them");
}

/// Parameter servers on the workers' nodes.
void resolve_colocated(Draft& draft, const StrategySpec& spec, PlannedStrategy& strategy) {
  const PlannedPool& worker = *computing_pools(draft.plan).front();
  for (const PlannedPool& pool : draft.plan.pools) {
    if (pool.role != Role::parameter_server) continue;
    draft.error(draft.path(pool),
                fmt::format("pool '{}' is for parameter servers, which are "
                            "colocated with the workers",
                            pool.name),
                "leave the pool out, or colocated");
    return;
  }
  const int per_node =
      std::max(1, worker.accelerators_per_node / std::max(1, strategy.accelerators_per_worker));
  const int nodes = std::min(worker.nodes_max, (strategy.workers + per_node - 1) / per_node);
  const int count = strategy.servers->count = spec.parameter_servers.value_or(nodes);
  if (count < 1 || count > nodes)
    draft.error(at("parameter_servers"),
                fmt::format("{} colocated parameter servers, one a node, on the {} nodes of '{}'",
                            count, nodes, worker.name),
                fmt::format("between 1 and {}", nodes));
}

void resolve_servers(Draft& draft, const StrategySpec& spec, PlannedStrategy& strategy) {
  if (!traits_of(spec.kind).servers) return;
  ParameterServers& servers = strategy.servers.emplace();
  servers.synchronous = spec.synchronous.value_or(true);
  servers.backup_workers = spec.backup_workers.value_or(0);
  servers.staleness = spec.staleness.value_or(0);
  servers.colocated = spec.colocated.value_or(false);
  servers.shards = spec.shards.value_or(ServerShards::even);
  servers.partition = spec.partition.value_or(Bytes{});
  servers.sparse_embeddings = spec.sparse_embeddings.value_or(true);
  servers.rows = spec.partition_strategy.value_or(RowPartition::mod);
  check_backup_workers(draft, strategy);
  if (servers.colocated) {
    resolve_colocated(draft, spec, strategy);
    return;
  }
  int initial = 0, most = 0;
  for (const PlannedPool& pool : draft.plan.pools) {
    if (pool.role != Role::parameter_server) continue;
    initial += pool.nodes_initial;
    most += pool.nodes_max;
  }
  servers.count = spec.parameter_servers.value_or(initial);
  if (servers.count > most)
    draft.error(
        at("parameter_servers"),
        fmt::format(
            "{} parameter servers need as many nodes, the pools with role parameter_server hold {}",
            servers.count, most),
        most == 0
            ? "add a pool: {name: servers, role: parameter_server, machine: n1-highmem-8, nodes: 2}"
            : "one server process runs on a node: more nodes or fewer servers");
  else if (servers.count < initial)
    draft.warn(
        fmt::format("{} of {} nodes for parameter servers are used; the rest is billed and idle",
                    servers.count, initial));
}

/// How the model is cut. What the degrees have to fill and to divide is checked with the batch
/// (resolve_batch), when the model is known.
void resolve_cut(Draft& draft, const StrategySpec& spec, PlannedStrategy& strategy) {
  Layout& layout = strategy.layout;
  layout.recompute = spec.recompute.value_or(Recompute::none);
  const StrategyTraits& traits = traits_of(spec.kind);
  layout.stops_recomputing = traits.stops_recomputing;
  layout.overlap = spec.overlap.value_or(true) && traits.overlaps;
  if (!traits.cuts) return;
  layout.tensor = spec.tensor.value_or(1);
  layout.pipeline = spec.pipeline.value_or(1);
  layout.context = spec.context.value_or(1);
  layout.expert = spec.expert.value_or(1);
  layout.zero_stage = spec.zero_stage.value_or(traits.usual_zero_stage);
  layout.sequence_parallel = layout.tensor > 1 && spec.sequence_parallel.value_or(true);
  layout.schedule = spec.schedule.value_or(PipelineSchedule::one_forward_one_backward);
  constexpr int kPartsOfInterleaved = 2;
  layout.interleave = layout.schedule == PipelineSchedule::interleaved
                          ? spec.interleave.value_or(kPartsOfInterleaved)
                          : 1;
  layout.offload_optimizer = spec.offload_optimizer.value_or(false);
  if (layout.zero_stage < traits.least_zero_stage)
    draft.error(at("zero_stage"),
                fmt::format("strategy {} with zero_stage {} shards nothing", to_text(spec.kind),
                            layout.zero_stage),
                "zero_stage: 1, 2 or 3; without sharding it is multi_worker_mirrored");
  if (spec.sequence_parallel.value_or(false) && layout.tensor == 1)
    draft.warn("sequence_parallel needs tensor above 1 and does nothing");
}

void check_all_reduce(Draft& draft, const StrategySpec& spec) {
  if (spec.all_reduce != AllReduceKind::in_network || draft.plan.fabric.in_network_reduction)
    return;
  draft.error(at("all_reduce"), "the cluster's switches do not add up",
              "cluster: {fabric: {in_network_reduction: true}}");
}

}  // namespace

int accelerators_per_worker(const StrategySpec& strategy, int per_node) {
  const bool one = traits_of(strategy.kind).one_each;
  return strategy.accelerators_per_worker.value_or(one ? std::min(per_node, 1) : per_node);
}

int workers_on(int nodes, int per_node, int accelerators_per_worker) {
  return accelerators_per_worker == 0 ? nodes : nodes * (per_node / accelerators_per_worker);
}

bool has_one_worker(StrategyKind kind, bool on_slice) {
  return on_slice || traits_of(kind).one_worker();
}

void resolve_strategy(Draft& draft, PlannedWorkload& job) {
  const StrategySpec& spec = draft.scenario().workload->strategy;
  const std::size_t before = draft.errors.size();
  if (!draft.roles_known) return;
  const std::vector<const PlannedPool*> pools = computing_pools(draft.plan);
  const PlannedPool& worker = *draft.plan.pool_with(Role::worker);
  if (!same_hardware(draft, spec, pools) || !check_kind_of_pool(draft, spec, worker)) return;
  if (worker.slice && worker.nodes_max > 1)
    draft.not_yet(draft.path(worker, "nodes"), "one job on several TPU slices", "nodes: 1");

  PlannedStrategy& strategy = job.strategy;
  strategy.kind = spec.kind;
  strategy.layout = {};
  strategy.servers.reset();
  strategy.all_reduce = spec.all_reduce;
  check_all_reduce(draft, spec);
  strategy.accelerators_per_worker = resolve_accelerators_per_worker(draft, spec, pools);
  if (strategy.accelerators_per_worker < 0) return;
  strategy.workers = resolve_workers(draft, spec, pools, strategy.accelerators_per_worker);
  resolve_servers(draft, spec, strategy);
  resolve_cut(draft, spec, strategy);
  draft.strategy_known = draft.errors.size() == before;
}

}  // namespace reckon::planning
