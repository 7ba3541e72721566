#pragma once
#include "cli/load/load.h"
#include "sim/queue/pace/own_jobs.h"

namespace reckon::cli {

/// Asks the step model and the simulation of one job on nodes that are there, at the medians of all
/// assumptions, with evidence as `reckon simulate` of the file has it, and without disruptions.
/// Files are read once. It outlives what it returns, and so does the catalog.
OwnTimes own_times(const LoadedCatalog& catalog);

}  // namespace reckon::cli
