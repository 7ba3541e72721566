#include "sim/scenario/restart.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/catalog/operations_keys.h"
#include "sim/scenario/assumption_table.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/training/workers.h"

// How a job goes on when a part of it is lost, against its strategy and its pools; and the tier of
// checkpoints on its nodes.
namespace reckon::planning {
namespace {

constexpr std::string_view kRestart = "workload.restart", kLocal = "workload.checkpoint.local";

std::string path_below(std::string_view path, std::string_view key) {
  return fmt::format("{}.{}", path, key);
}

/// Of the pools whose nodes compute, in the order in which workers fill them.
struct Room {
  int workers_per_node = 1;  // on the fullest node
  int gang = 0;              // nodes that the job needs
  int there = 0;             // nodes that are always there
};
Room room_of(const Plan& plan, const PlannedStrategy& strategy) {
  Room room;
  int left = strategy.workers;
  for (const PlannedPool* pool : computing_pools(plan)) {
    const int each =
        std::max(1, workers_on(1, pool->accelerators_per_node, strategy.accelerators_per_worker));
    const int most = pool->autoscaling ? pool->nodes_max : pool->nodes_initial;
    const int nodes = std::min(most, (left + each - 1) / each);
    room.workers_per_node = std::max(room.workers_per_node, each);
    room.gang += nodes;
    room.there += pool->autoscaling ? pool->nodes_min : pool->nodes_initial;
    left = std::max(0, left - nodes * each);
  }
  return room;
}

/// Can anything but a full restart be? Says why not.
bool may_keep_processes(Draft& draft, const PlannedWorkload& job, RestartKind kind) {
  const auto refuse = [&](std::string why, std::string hint) {
    draft.error(path_below(kRestart, "kind"), std::move(why), std::move(hint));
    return false;
  };
  const std::string word{to_text(kind)};
  if (draft.plan.service.nodes_of_job)
    return refuse(fmt::format("service {} starts all processes of a job again, restart kind {} is "
                              "not possible there",
                              draft.plan.service.id.name, word),
                  "restart: {kind: full}, or a service with node pools");
  if (std::ranges::any_of(draft.plan.pools,
                          [](const PlannedPool& p) { return p.slice.has_value(); })) {
    draft.not_yet(path_below(kRestart, "kind"), fmt::format("restart kind {} on TPU slices", word),
                  "restart: {kind: full}");
    return false;
  }
  if (job.strategy.servers)
    return refuse(fmt::format("restart kind {} is of jobs that reduce among themselves; parameter "
                              "servers go on without a worker, or start again",
                              word),
                  "leave restart out");
  return true;
}

void resolve_spares(Draft& draft, const RestartSpec& spec, const Room& room,
                    PlannedRestart& restart) {
  restart.spares = room.there - room.gang;
  const int wanted = spec.spares.value_or(std::max(1, restart.spares));
  if (restart.spares == wanted) return;
  draft.error(
      spec.spares ? path_below(kRestart, "spares") : std::string(kRestart),
      fmt::format("{} spare node{} wanted: the job needs {} of the {} nodes that its pools always "
                  "have",
                  wanted, wanted == 1 ? "" : "s", room.gang, room.there),
      fmt::format("nodes: {}, or spares: {} with workers for fewer nodes", room.gang + wanted,
                  std::max(1, restart.spares)));
}

void resolve_elastic(Draft& draft, const PlannedWorkload& job, const RestartSpec& spec,
                     const Room& room, PlannedRestart& restart) {
  const int workers = job.strategy.workers, each = workers_of_a_copy(job);
  const int copies = workers / std::max(1, each);
  if (copies < 2) {
    draft.error(path_below(kRestart, "kind"),
                fmt::format("an elastic job goes on with fewer data-parallel copies, and this one "
                            "has {}",
                            copies == 1 ? "one" : "none"),
                "restart: {kind: in_place}, or more data-parallel workers");
    return;
  }
  const int nodes = spec.min.value_or((room.gang + 1) / 2);
  const int least = std::max(1, nodes) * room.workers_per_node;
  restart.min_workers = std::min((least + each - 1) / each * each, workers);
  if (spec.min && *spec.min >= room.gang)
    draft.error(path_below(kRestart, "min"),
                fmt::format("an elastic job of {} nodes that needs {} of them does not shrink",
                            room.gang, *spec.min),
                fmt::format("between 1 and {}", room.gang - 1));
  restart.batch = spec.batch;
}

void resolve_local(Draft& draft, PlannedWorkload& job, const LocalCheckpointSpec& spec,
                   const Room& room) {
  const PlannedCheckpoint& checkpoint = job.checkpoint;
  PlannedLocalCheckpoint& local = job.checkpoint.local.emplace();
  local.to = spec.to;
  local.every = spec.every;
  local.replicas = spec.replicas.value_or(spec.to == LocalTier::peer_memory ? 2 : 1);
  if (spec.to == LocalTier::local_disk)
    local.disk = fact_of<BytesPerSecond>(draft.catalog.operations.at(keys::kLocalDisk));
  if (checkpoint.mode == CheckpointSpec::Mode::none)
    draft.error(kLocal, "checkpoints on the nodes alone are gone with more than a node",
                "give workload.checkpoint an interval for the storage, or leave local out");
  if (checkpoint.mode == CheckpointSpec::Mode::interval && local.every >= checkpoint.interval)
    draft.error(path_below(kLocal, "every"),
                "checkpoints on the nodes are not more frequent than those in the storage",
                "every below workload.checkpoint.interval");
  if (job.strategy.servers)
    draft.not_yet(kLocal, "a tier of checkpoints on the nodes of parameter servers",
                  "leave local out");
  if (local.replicas > std::max(1, room.gang))
    draft.error(path_below(kLocal, "replicas"),
                fmt::format("{} nodes cannot hold {} copies of a part", room.gang, local.replicas),
                fmt::format("replicas: between 1 and {}", std::max(1, room.gang)));
}

}  // namespace

void resolve_restart(Draft& draft, PlannedWorkload& job) {
  const WorkloadSpec& workload = *draft.scenario().workload;
  if (!draft.strategy_known) return;
  const Room room = room_of(draft.plan, job.strategy);
  if (workload.checkpoint && workload.checkpoint->local)
    resolve_local(draft, job, *workload.checkpoint->local, room);
  if (!workload.restart) return;
  const RestartSpec& spec = *workload.restart;
  PlannedRestart& restart = job.restart.emplace();
  restart.kind = spec.kind;
  if (spec.kind == RestartKind::full || !may_keep_processes(draft, job, spec.kind)) return;
  restart.regroup = seconds_fact(draft.catalog.operations.at(keys::kRegroup));
  if (spec.kind == RestartKind::warm_spare) resolve_spares(draft, spec, room, restart);
  if (spec.kind == RestartKind::elastic) resolve_elastic(draft, job, spec, room, restart);
}

void add_restart(AssumptionTable& table, const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  if (job.restart && job.restart->kind != RestartKind::full)
    table.add(
        "communicators made anew after a loss", "restart.regroup", "s", kLife,
        [](auto& p) -> auto& { return p.only_job().restart->regroup; });
  if (job.checkpoint.local && job.checkpoint.local->to == LocalTier::local_disk)
    table.add(
        "bandwidth of a node's own disks", "checkpoint.local_disk", "B/s", kLife,
        [](auto& p) -> auto& { return p.only_job().checkpoint.local->disk; });
  if (plan.failures.straggler_share.value > 0)
    table.add(
        "share of the time that all wait for slow nodes", "failures.straggler_share", "fraction",
        kLife, [](auto& p) -> auto& { return p.failures.straggler_share; });
}

}  // namespace reckon::planning
