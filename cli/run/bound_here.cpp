#include "cli/run/bound_here.h"

#include <optional>
#include <vector>

#include "cli/history/history_store.h"
#include "cli/machine_store.h"
#include "executor/train/graph_runtime.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/rounding.h"
#include "sim/scenario/resolve/here.h"
#include "sim/step/measured_compute.h"

namespace reckon::cli {
namespace {

/// Passes that are worth measuring before a run: of what our worker can run, and not for long.
bool worth_measuring(const PlannedWorkload& job, Seconds modelled) {
  constexpr Seconds kLongest{1.5};
  return modelled < kLongest && cannot_run(job.model).empty();
}

}  // namespace

Rebound bound_to_this_machine(const RunArtifact& planned, const OperationalDefaults& operations) {
  const bool computes_here = !planned.container && computes_on_processors(planned.plan);
  auto machine = computes_here ? MachineStore::open() : std::optional<MachineStore>{};
  const std::vector<OwnRun> runs = machine ? runs_kept() : std::vector<OwnRun>{};
  ThisMachine here{.operations = &operations, .name = {}, .rates = {}, .passes = {}, .runs = runs};
  if (machine) {
    here.name = machine->name();
    here.rates = &machine->rates();
    here.passes = [&](const PlannedPool& workers, const PlannedWorkload& job) {
      return worth_measuring(job, passes_time(workers, job))
                 ? std::optional(machine->passes({.model = &job.model,
                                                  .batch = job.strategy.layout.micro_batch,
                                                  .recompute = job.strategy.layout.recompute,
                                                  .threads = workers.measured_rates->threads,
                                                  .processes = computing_ranks(job.strategy),
                                                  .rounding = rounding_of(job.precision)}))
                 : std::nullopt;
    };
  }
  return rebind(planned, here);
}

}  // namespace reckon::cli
