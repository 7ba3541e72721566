#pragma once
#include "cli/command.h"
#include "cli/options.h"

namespace reckon::cli {

/// `reckon run --on kubernetes`. `names`: the options of the command, by which the words of a run
/// that is attached to are read.
int run_in_cluster(const Command& self, OptionNames names, const Options& options);

/// Throws UsageError where an option that only a cluster knows is given without one.
void refuse_cluster_options(const Options& options);

}  // namespace reckon::cli
