#pragma once
#include <array>
#include <string_view>

#include "sim/step/step.h"

namespace reckon {

/// One step by what its wall time is spent on, as one rank sees it: the parts add up to it.
struct StepParts {
  Seconds compute{};
  Seconds exposed_communication{};
  Seconds exposed_input{};
  Seconds update{};
  Seconds other{};  // framework between steps, pipeline bubbles, all that nobody timed
};

struct StepPart {
  std::string_view name;  // as it is called beside a run
  Seconds StepParts::*time;
};
inline constexpr std::array kStepParts{
    StepPart{"step.compute", &StepParts::compute},
    StepPart{"step.exposed_communication", &StepParts::exposed_communication},
    StepPart{"step.input", &StepParts::exposed_input}, StepPart{"step.update", &StepParts::update},
    StepPart{"step.other", &StepParts::other}};

/// `other` is what the others leave of e.step. Asynchronous training, whose step is all workers'
/// and whose parts are one's, may leave less than nothing.
inline StepParts parts_of(const StepEstimate& e) {
  StepParts p{e.compute, e.exposed_communication, e.exposed_input, e.update, {}};
  p.other = e.step - p.compute - p.exposed_communication - p.exposed_input - p.update;
  return p;
}

}  // namespace reckon
