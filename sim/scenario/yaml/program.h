#pragma once
#include "sim/scenario/yaml/fields.h"

// Inside the reader: a program of the user's own in `workload:`, and a step that was measured.
namespace reckon {

struct StepTime {
  Seconds step{};
};
const Fields<StepTime>& step_time_fields();
const Fields<ContainerSpec>& container_fields();

}  // namespace reckon
