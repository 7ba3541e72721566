#pragma once
#include <optional>

#include "sim/measurement/measurements.h"
#include "sim/scenario/processor_rates.h"

namespace reckon {

/// The rates of the machine that was probed, from the records of probe_processor()
/// (executor/probe/probe.h). nullopt: a product of the grid or every pass over memory is missing.
std::optional<ProcessorRates> processor_rates(const Measurements& probe);

}  // namespace reckon
