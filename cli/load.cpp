#include "cli/load.h"

#include "report/html/html.h"
#include "sim/step/network/referee.h"

namespace reckon::cli {

std::optional<Seconds> trained_for(const std::optional<Forecast>& forecast) {
  if (!forecast || !forecast->feasible) return std::nullopt;
  return Seconds{forecast->time_seconds.mean};
}

std::optional<ServingForecast> forecast_service(const LoadedScenario& loaded,
                                                const std::optional<Forecast>& forecast,
                                                const Options& options) {
  if (!loaded.serving) return std::nullopt;
  return forecast_serving(*loaded.serving, options.seed, trained_for(forecast));
}

TraceResult answer_trace(TraceQuestion question, const Options& options) {
  question.seed = options.seed.value_or(question.seed);
  return simulate_trace(question, options.replications.value_or(1), options.threads);
}

ForecastOptions forecast_options(const Options& options) {
  ForecastOptions how;
  how.seed = options.seed;
  how.replications = options.replications;
  how.threads = options.threads;
  how.assumption_effects = false;
  return how;
}

std::unique_ptr<NetworkModel> make_network(const Options& options) {
  if (options.engine == "simgrid") return make_referee_network(find_referee());
  if (options.engine == "fluid") return make_fluid_network();
  if (options.engine == kClosedForms) return make_closed_form_network();
  return make_default_network();
}

Diagnostic mistake_of(const std::string& of, const TooMuchWork& e) {
  return {Severity::error, {of, 0, 0}, e.what(), e.hint};
}

Diagnostic mistake_of(const std::string& of, const Overflow& e) {
  return {Severity::error,
          {of, 0, 0},
          e.what(),
          "a number of the question is too large: check its times, prices and counts, and those of "
          "--set, --catalog and --calibration"};
}

void require_html() {
  if (html_assets().scripts.empty())
    throw std::runtime_error("--html is not in this program: " + why_no_html() + "; " + kHtmlTodo);
}

}  // namespace reckon::cli
