#pragma once
#include "sim/scenario/processor_rates.h"
#include "sim/step/compute.h"

namespace reckon {

/// What a layer takes over `batch` samples on CPUs that were probed, in fp32, as reckon-worker runs
/// it (executor/train): a layer with weights is one product forward,
///   y (r, n) = x (r, k) W^T,  r = F / (2 W) rows, n = outputs / r, k = W / n,
/// F FLOPs and W weights of the layer, and two backward: (n, k) over r for the weights, (r, k) over
/// n for its input; convolutions gather the patches under their outputs (r k elements) before each
/// product that needs them, in pieces that stay in the second cache. Attention is products of its
/// sequence's length, each by one thread, and three passes over its scores. All other layers read
/// and write their activations once. Memory by how much a pass touches.
///
/// Valid within the probe's grid; measured error: docs/MODELS.md, "Probed CPUs".
LayerCost measured_cost(const LayerWork& work, double batch, const WorkerRates& rates);

/// Forward and backward of the job's batch on the pool's CPUs.
Seconds passes_time(const PlannedPool& pool, const PlannedWorkload& job);
/// All of the plan's workers on probed CPUs take `passes` for theirs (WorkerRates::network).
void set_measured_passes(Plan& plan, Seconds passes);

}  // namespace reckon
