#include "cli/load/load.h"

#include "report/html/html.h"
#include "sim/step/network/referee.h"

namespace reckon::cli {

std::optional<Seconds> trained_for(const std::optional<Forecast>& forecast) {
  if (!forecast || !forecast->feasible) return std::nullopt;
  return Seconds{forecast->time_seconds.mean};
}

std::optional<ServingForecast> forecast_service(const LoadedScenario& loaded,
                                                const std::optional<Forecast>& forecast,
                                                const Sampling& sampling) {
  if (!loaded.serving) return std::nullopt;
  return forecast_serving(*loaded.serving, sampling.seed, trained_for(forecast));
}

TraceResult answer_trace(TraceQuestion question, const Sampling& sampling) {
  question.seed = sampling.seed.value_or(question.seed);
  return simulate_trace(question, sampling.replications.value_or(1), sampling.threads);
}

ForecastOptions forecast_options(const Sampling& sampling) {
  ForecastOptions how;
  how.seed = sampling.seed;
  how.replications = sampling.replications;
  how.threads = sampling.threads;
  how.assumption_effects = false;
  return how;
}

std::unique_ptr<NetworkModel> make_network(const NetworkChoice& choice) {
  if (!choice.engine) return make_default_network();
  switch (*choice.engine) {
    case NetworkEngine::fluid:
      return make_fluid_network();
    case NetworkEngine::closed_forms:
      return make_closed_form_network();
    case NetworkEngine::simgrid:
      return make_referee_network(find_referee());
  }
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
