#pragma once
#include "cli/probe/probe_options.h"

namespace reckon::cli {

/// `reckon probe --on kubernetes PLAN`: one worker of the plan by itself on each node that could
/// hold one, and their ranking.
int probe_cluster(const ProbeOptions& options);

}  // namespace reckon::cli
