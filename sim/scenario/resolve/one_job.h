#pragma once
#include <optional>
#include <string_view>

#include "sim/scenario/plan.h"

namespace reckon {

/// What is of one job ("trial", "a model sheet") and was given the plan of several: the mistake, at
/// the place where the scenario lists them. nullopt: the plan has one.
std::optional<Diagnostic> why_not_one_job(const Plan& plan, const Places& places,
                                          std::string_view what);

}  // namespace reckon
