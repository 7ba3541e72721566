#pragma once
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/shipped_catalog.h"

// From a scenario's text to its plan, against the catalogs of this source tree.
namespace reckon::test {

inline Expected<Plan> plan_of(const std::string& text,
                              const std::vector<std::string>& overrides = {}) {
  const Expected<ScenarioFile> file = parse_scenario(text, "s.yaml", overrides);
  if (!file) return tl::unexpected(file.error());
  return make_plan(*file, shipped_catalog());
}

/// The same of a text that is right; throws its errors.
inline Plan checked_plan_of(const std::string& text,
                            const std::vector<std::string>& overrides = {}) {
  Expected<Plan> plan = plan_of(text, overrides);
  if (!plan) throw std::runtime_error(format(plan.error()));
  return std::move(*plan);
}

/// All errors as a user reads them; "" where there are none.
inline std::string errors_of(const std::string& text,
                             const std::vector<std::string>& overrides = {}) {
  const Expected<Plan> plan = plan_of(text, overrides);
  return plan ? "" : format(plan.error());
}

/// The plan of scenarios/NAME.yaml.
inline Expected<Plan> shipped_plan(const std::string& name,
                                   const std::vector<std::string>& overrides = {}) {
  const auto path = std::filesystem::path(RECKON_SOURCE_DIR) / "scenarios" / (name + ".yaml");
  const Expected<ScenarioFile> file = read_scenario(path, overrides);
  if (!file) return tl::unexpected(file.error());
  return make_plan(*file, shipped_catalog());
}

}  // namespace reckon::test
