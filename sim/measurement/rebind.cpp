#include "sim/measurement/rebind.h"

#include "sim/base/check.h"
#include "sim/scenario/own_program.h"
#include "sim/scenario/resolve/here.h"
#include "sim/step/measured_compute.h"

namespace reckon {

Rebound rebind(const RunArtifact& planned, const ThisMachine& here) {
  RECKON_CHECK(here.operations != nullptr);
  Rebound bound{.artifact = planned, .run = {}, .evidence = {}};
  bound.artifact.rebound = Rebinding{.target = "this machine", .from = artifact_digest(planned)};
  Plan& plan = bound.artifact.plan;
  run_here(plan, *here.operations, !planned.container, here.rates);
  if (!planned.container) run_by_own_program(plan);
  const PlannedPool* workers = plan.pool_with(Role::worker);
  if (here.rates == nullptr || workers == nullptr || !workers->measured_rates) return bound;
  if (here.passes)
    if (const auto took = here.passes(*workers, plan.only_job())) set_measured_passes(plan, *took);
  bound.run = own_question(plan, here.name);
  bound.evidence = set_own_evidence(plan, here.runs, *bound.run);
  return bound;
}

}  // namespace reckon
