#include "cli/simulate/answer.h"

#include "report/json.h"
#include "report/serving/serving.h"
#include "report/table.h"
#include "sim/serving/serving_range.h"

namespace reckon::cli {

ScenarioAnswer answer_scenario(const LoadedScenario& loaded, const NetworkModel& network,
                               const Sampling& sampling,
                               const std::function<void(double)>& progress) {
  ScenarioAnswer answer;
  if (loaded.plan) {
    ForecastOptions how = forecast_options(sampling);
    how.assumption_effects = true;
    how.progress = progress;
    answer.forecast = make_forecast(*loaded.plan, network, how);
  }
  answer.serving = forecast_service(loaded, answer.forecast, sampling);
  if (answer.serving)
    answer.serving->range =
        serving_range(*loaded.serving, sampling.seed, trained_for(answer.forecast));
  return answer;
}

std::string answer_text(const ScenarioAnswer& answer, OutputFormat format) {
  const auto& [forecast, serving] = answer;
  const ServingForecast* served = serving ? &*serving : nullptr;
  if (format == OutputFormat::json)
    return forecast ? forecast_json(*forecast, served) : serving_json(*serving);
  std::string text = forecast ? forecast_table(*forecast) : "";
  if (forecast && served) text += "\n";
  if (served) text += serving_table(*served);
  return text;
}

}  // namespace reckon::cli
