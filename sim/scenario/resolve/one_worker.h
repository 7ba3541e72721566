#pragma once
#include "sim/scenario/plan.h"

namespace reckon {

/// The plan's job as one of its workers would do it by itself: strategy single, on one accelerator
/// or on CPUs, its batch that of one accelerator. What a trial measures on one machine.
/// nullopt: no worker holds a whole model (tensor, pipeline, context or expert parallelism).
std::optional<Plan> one_worker(const Plan& plan);

}  // namespace reckon
