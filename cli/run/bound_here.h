#pragma once
#include "sim/measurement/rebind.h"

namespace reckon::cli {

/// The plan for processes of this machine, by what is known of its processors: the first plan that
/// computes on them has them probed, the first of its network and batch has the passes measured.
Rebound bound_to_this_machine(const RunArtifact& planned, const OperationalDefaults& operations);

}  // namespace reckon::cli
