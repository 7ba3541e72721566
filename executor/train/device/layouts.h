#pragma once
#include "sim/base/diagnostic.h"
#include "sim/scenario/plan.h"

// Which layouts executor/cuda trains: known without a device, and without CUDA.
namespace reckon {

/// What of the job's layout its ranks do not do on devices; empty: they do all of it.
Diagnostics cannot_cut_on_device(const PlannedWorkload& job);

}  // namespace reckon
