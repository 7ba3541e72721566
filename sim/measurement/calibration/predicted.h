#pragma once
#include <string_view>

#include "sim/measurement/measured_run.h"
#include "sim/scenario/plan.h"
#include "sim/step/network/network.h"
#include "sim/step/step.h"

// What the models say of a quantity that was measured.
namespace reckon {

/// Is this a driver's name for that accelerator of the catalog? The first word of the catalog's,
/// its model number, stands in the driver's: "H100-SXM5-80", "NVIDIA H100 80GB HBM3".
bool names_accelerator(std::string_view device, std::string_view accelerator);

/// What the models say of the plan's first job. 0: it has none of it.
double predicted(const MeasuredQuantity& of, const Plan& plan, const StepEstimate& step,
                 const NetworkModel& network);

}  // namespace reckon
