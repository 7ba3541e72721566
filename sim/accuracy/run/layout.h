#pragma once
#include "sim/accuracy/published_runs.h"
#include "sim/scenario/plan.h"

// Runs of language models whose layout nobody printed.
namespace reckon {

/// A language model under model parallelism whose row does not say in which degrees. (Of what is
/// not even known to be that, nothing is assumed.)
bool hides_layout(const RunConfiguration& run);

/// Gives `job`, whose strategy is model_parallel, the fastest layout by the step model of those
/// that fit in memory: who publishes a run has tuned it. Tensor parallelism stays inside nodes and
/// within eight ranks; optimizer state is sharded where there are replicas (Megatron-LM's
/// distributed optimizer), for a model of which all is trained. False: none fits.
bool take_fastest_layout(const Plan& plan, PlannedWorkload& job);

}  // namespace reckon
