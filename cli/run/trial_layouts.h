#pragma once
#include "cli/load/load.h"
#include "cli/run/trial_options.h"

namespace reckon::cli {

/// `reckon trial FILE --layouts N`: the N layouts that look best on the scenario's own nodes, and
/// its own one, run here for some steps each. Returns the exit code.
int try_layouts(const TrialCommandOptions& options, const LoadedCatalog& catalog);

}  // namespace reckon::cli
