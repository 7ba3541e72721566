#pragma once
#include "sim/catalog/catalog.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// No pool of it has accelerators.
bool computes_on_processors(const Plan& plan);

/// The plan as `reckon run` starts it on this machine: its processes are nodes that are there, no
/// image is pulled. Our own program (`ours`) on processors compiles no graph, and starts and saves
/// as catalogs/operations.yaml says of it (job_start.worker_start_s, checkpoint.worker_save_s),
/// whatever a calibration measured elsewhere; its workers share the machine's cores as
/// `reckon-worker` does, and compute as `rates` has it (nullptr: as the catalog's vCPUs do).
/// Reclaims and the policy of checkpoints stay.
void run_here(Plan& plan, const OperationalDefaults& operations, bool ours,
              const ProcessorRates* rates);

}  // namespace reckon
