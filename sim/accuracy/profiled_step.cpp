#include "sim/accuracy/profiled_step.h"

#include "sim/scenario/plan.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

/// What one printed step time leaves open, as a standard deviation of its logarithm: which steps it
/// is the mean of, and how they were clocked.
constexpr double kNoise = 0.05;

constexpr const char* kPath = "workload.container.profile";

}  // namespace

bool has_profiled_step(const Scenario& scenario) {
  return scenario.workload && scenario.workload->container &&
         std::holds_alternative<Seconds>(scenario.workload->container->profile);
}

Expected<OwnRow> profiled_row(const ScenarioFile& as_written, const Catalog& catalog) {
  auto plan = make_plan(as_written, catalog);
  if (!plan) return tl::unexpected(std::move(plan.error()));
  const PlannedPool* workers = plan->pool_with(Role::worker);
  if (workers == nullptr || !workers->accelerator)
    return tl::unexpected(
        Diagnostics{{Severity::error, as_written.places.find(kPath),
                     "a measured step is scaled for workers with accelerators, and these have none",
                     "measure the machine instead: reckon probe, or reckon trial on this file"}});
  OwnRow row = own_row(*plan, *make_default_network());
  row.id = "profile of " + plan->name;
  row.step_seconds = std::get<Seconds>(as_written.scenario.workload->container->profile).count();
  row.noise = kNoise;
  row.steps = 1;
  return row;
}

}  // namespace reckon
