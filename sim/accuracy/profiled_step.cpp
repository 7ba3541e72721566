#include "sim/accuracy/profiled_step.h"

#include "sim/scenario/plan.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

/// What one printed step time leaves open, as a standard deviation of its logarithm: which steps it
/// is the mean of, and how they were clocked.
constexpr double kNoise = 0.05;

std::optional<Seconds> profiled_step(const Scenario& scenario) {
  if (!scenario.workload) return std::nullopt;
  if (scenario.workload->profiled_step) return scenario.workload->profiled_step;
  if (!scenario.workload->container) return std::nullopt;
  const auto* step = std::get_if<Seconds>(&scenario.workload->container->profile);
  return step != nullptr ? std::optional(*step) : std::nullopt;
}

std::string path_of(const Scenario& scenario) {
  return scenario.workload->profiled_step ? "workload.profile" : "workload.container.profile";
}

}  // namespace

bool has_profiled_step(const Scenario& scenario) { return profiled_step(scenario).has_value(); }

Expected<OwnRow> profiled_row(const ScenarioFile& as_written, const Catalog& catalog) {
  auto plan = make_plan(as_written, catalog);
  if (!plan) return tl::unexpected(std::move(plan.error()));
  const PlannedPool* workers = plan->pool_with(Role::worker);
  if (workers == nullptr || !workers->accelerator)
    return tl::unexpected(
        Diagnostics{{Severity::error, as_written.places.find(path_of(as_written.scenario)),
                     "a measured step is scaled for workers with accelerators, and these have none",
                     "measure the machine instead: reckon probe, or reckon trial on this file"}});
  OwnRow row = own_row(*plan, *make_default_network());
  row.id = "profile of " + plan->name;
  row.step_seconds = profiled_step(as_written.scenario)->count();
  row.noise = kNoise;
  row.steps = 1;
  return row;
}

}  // namespace reckon
