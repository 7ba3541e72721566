#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"

// Scenarios with several jobs as text: taken apart, and laid together.
namespace reckon {

/// The scenario as flat_scenario writes it, with one of its jobs as the only workload: `workload:`
/// instead of `jobs:`, and a `plan:` that says what may vary, without the limits of all jobs
/// together.
Expected<std::string> scenario_of_job(std::string_view text, const std::string& name,
                                      std::span<const std::string> overrides,
                                      std::span<const std::filesystem::path> layers,
                                      std::string_view job);

/// The way back: scenarios with one workload each, laid together. All but the workloads is that of
/// the first. There is at least one, and each reads as YAML.
struct OneJob {
  std::string name;
  Seconds submit{};
  std::string text;
};
std::string scenario_of_jobs(std::span<const OneJob> jobs);

}  // namespace reckon
