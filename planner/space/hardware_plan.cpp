#include "planner/space/hardware_plan.h"

#include <algorithm>

#include "sim/scenario/resolve/training/training.h"

namespace reckon::planner {
namespace {

/// A split that any hardware takes.
Split first_split(const Question& question, const Hardware& hardware) {
  const bool servers = !hardware.server_machine.empty() ||
                       traits_of(question.file.scenario.workload->strategy.kind).servers;
  Split split;
  split.parameter_servers = hardware.server_machine.empty() && !colocates_servers(question) ? 0 : 1;
  split.kind = servers                   ? StrategyKind::parameter_server
               : !hardware.slice.empty() ? StrategyKind::tpu
               : hardware.per_node > 1   ? StrategyKind::mirrored
                                         : StrategyKind::single;
  return split;
}

/// Any batch that each strategy takes. The question's comes with the split.
void take_any_batch(WorkloadSpec& workload) {
  workload.batch_per_accelerator = 1;
  workload.global_batch.reset();
  workload.strategy.micro_batch.reset();
  workload.strategy.backup_workers.reset();
  workload.restart.reset();
}

}  // namespace

CapacityType riskiest(const std::vector<CapacityType>& pricing) {
  return std::ranges::count(pricing, CapacityType::spot) > 0 ? CapacityType::spot : pricing.back();
}

HardwarePlan::HardwarePlan(const Question& question, const Hardware& hardware,
                           const Catalog& catalog)
    : q_(question), h_(hardware), catalog_(catalog) {
  offer_.region = hardware.regions.front();
  if (const auto zones = hardware.zones.find(offer_.region); zones != hardware.zones.end())
    offer_.zone = zones->second.front();
  offer_.pricing = riskiest(question.may.pricing);
}

Diagnostics HardwarePlan::make() {
  file = q_.file;
  apply_changes(changes_for(q_, h_, offer_, first_split(q_, h_)), file.scenario);
  take_any_batch(*file.scenario.workload);
  auto made = make_plan(file, catalog_);
  if (!made) return std::move(made.error());
  plan = std::move(*made);
  worker = std::size_t(plan.pool_with(Role::worker) - plan.pools.data());
  servers = job().strategy.server_count();
  return {};
}

Diagnostics HardwarePlan::take(const Split& split) {
  file.scenario.cluster = q_.file.scenario.cluster;
  file.scenario.workload = q_.file.scenario.workload;
  apply_changes(changes_for(q_, h_, offer_, split), file.scenario);
  file.scenario.workload->restart.reset();  // an offer's
  return planning::resolve_training(plan, file, catalog_);
}

}  // namespace reckon::planner
