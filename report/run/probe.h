#pragma once
#include <string>

#include "sim/measurement/measurements.h"

namespace reckon {

/// Empty: there are GPUs; the first was measured.
struct GpuAnswer {
  std::string none, not_measured;  // why
};

/// What a probe found out, for a person: the machine, its GPUs or why there are none, what casts
/// doubt on the numbers, and a table for each kind of item.
std::string probe_table(const Measurements& probe, const GpuAnswer& gpu);

}  // namespace reckon
