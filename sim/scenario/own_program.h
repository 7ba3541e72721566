#pragma once
#include <string>

#include "sim/scenario/plan.h"

namespace reckon {

/// As reckon-worker calls what it trains with on GPUs (RunRecord::stack).
inline constexpr const char* kOwnDeviceStack = "reckon-cuda";

/// The plan as reckon-worker runs it. On GPUs its stack is the worker's, whatever the scenario
/// says: it decides in how many bytes ranks exchange what (sim/step/element_sizes.h); speeds stay
/// those of the scenario's stack. It makes evaluation passes where the data has samples for them.
void run_by_own_program(Plan& plan);
/// What of the plan reckon-worker leaves out, which changes nothing of what is trained; "":
/// nothing.
std::string left_out_by_own_program(const Plan& plan);

}  // namespace reckon
