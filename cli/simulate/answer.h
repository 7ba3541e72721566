#pragma once
#include <functional>
#include <optional>
#include <string>

#include "cli/load/load.h"
#include "sim/serving/serving.h"

namespace reckon::cli {

/// What `reckon simulate` says of a scenario that is no trace: of its training, its service, or
/// both.
struct ScenarioAnswer {
  std::optional<Forecast> forecast;
  std::optional<ServingForecast> serving;
};
ScenarioAnswer answer_scenario(const LoadedScenario& loaded, const NetworkModel& network,
                               const Sampling& sampling,
                               const std::function<void(double)>& progress = {});

/// As the command prints it.
std::string answer_text(const ScenarioAnswer& answer, OutputFormat format);

}  // namespace reckon::cli
