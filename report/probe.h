#pragma once
#include <string>

#include "sim/calibration/measurements.h"

namespace reckon {

/// What a probe found out, for a person: the machine, its GPUs (else `no_gpu` says why there are
/// none), what casts doubt on the numbers, and a table for each kind of item.
std::string probe_table(const Measurements& probe, const std::string& no_gpu);

}  // namespace reckon
