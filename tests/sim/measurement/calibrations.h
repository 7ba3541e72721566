#pragma once
#include <string>

#include "sim/measurement/calibration/calibrate.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/shipped_catalog.h"

// What tests of calibrations ask of them.
namespace reckon::test {

inline StepEstimate step_of(const ScenarioFile& file, const Catalog& c) {
  const Plan plan = make_plan(file, c).value();
  return estimate_step(plan, plan.only_job(), *make_fluid_network());
}

inline const Correction* correction_of(const Calibration& c, const std::string& parameter) {
  for (const Correction& x : c.corrections)
    if (x.parameter == parameter) return &x;
  return nullptr;
}

}  // namespace reckon::test
