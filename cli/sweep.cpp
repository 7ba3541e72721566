#include "cli/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

std::string reason_of(const Diagnostics& diagnostics) {
  const auto first = std::find_if(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& d) {
    return d.severity == Severity::error;
  });
  return first == diagnostics.end() ? "unknown" : first->what;
}

std::string does_not_fit(const Forecast& f) {
  return fmt::format("needs {} of the {} on an accelerator", format_bytes(f.memory.required()),
                     format_bytes(f.memory.available));
}

bool is_of_service(const SweepAxis& axis) {
  return axis.path == "serving" || axis.path.starts_with("serving.");
}

}  // namespace

std::vector<SweepAxis> sweep_axes(const Sweeps& sweeps, bool of_services) {
  std::vector<SweepAxis> axes;
  std::string problems;
  const auto problem = [&](const std::string& text) {
    problems += (problems.empty() ? "--sweep: " : "\n--sweep: ") + text;
  };
  double points = 1;
  for (const std::string& text : sweeps.sweeps) {
    auto axis = parse_sweep(text);
    if (!axis) {
      problem(axis.error());
      continue;
    }
    if (std::any_of(axes.begin(), axes.end(),
                    [&](const SweepAxis& a) { return a.path == axis->path; }))
      problem(fmt::format("{} is swept twice", axis->path));
    if (!of_services && is_of_service(*axis))
      problem(
          fmt::format("{} changes the service, and what is forecast is the training: "
                      "'reckon simulate --set {}={}' for each value",
                      axis->path, axis->path, axis->values.front()));
    points *= double(axis->values.size());
    axes.push_back(std::move(*axis));
  }
  if (points > double(kMostSweepPoints))
    problem(fmt::format("{} points; at most {} are forecast at once", format_count(points),
                        format_count(double(kMostSweepPoints))));
  if (!problems.empty()) throw UsageError(problems);
  return axes;
}

ScenarioChanges at_point(const ScenarioChanges& changes, const std::vector<SweepAxis>& axes,
                         const std::vector<std::string>& values) {
  ScenarioChanges point = changes;
  for (std::size_t a = 0; a < axes.size(); ++a)
    point.overrides.push_back(axes[a].path + "=" + values[a]);
  return point;
}

namespace {

/// `at(options, sweep, point)` forecasts one point, or says what is wrong with the scenario there;
/// an error only where that is so at every point.
template <class Sweep, class At>
Expected<Sweep> run_points(const std::string& file, const ScenarioChanges& changes,
                           const std::vector<SweepAxis>& axes, At at) {
  Sweep sweep;
  sweep.scenario = std::filesystem::path(file).stem().string();
  for (const SweepAxis& axis : axes) sweep.paths.push_back(axis.path);
  const auto points = sweep_points(axes);
  std::optional<Diagnostics> first_errors;
  bool any = false;
  ProgressLine line;
  const auto progress = line.callback();
  for (const auto& values : points) {
    auto& point = sweep.points.emplace_back();
    point.values = values;
    auto done = in_bounds(file, [&] { return at(at_point(changes, axes, values), sweep, point); });
    if (done && !*done) done = tl::unexpected(std::move(done->error()));
    if (done) {
      any = true;
    } else {
      point.reason = reason_of(done.error());
      if (!first_errors) first_errors = std::move(done.error());
    }
    if (progress) progress(double(sweep.points.size()) / double(points.size()));
  }
  if (!any && first_errors) return tl::unexpected(std::move(*first_errors));
  return sweep;
}

}  // namespace

Expected<bool> sweeps_service(const std::string& file, const ScenarioChanges& changes,
                              const std::vector<SweepAxis>& axes) {
  if (std::any_of(axes.begin(), axes.end(), is_of_service)) return true;
  // The first point, as a scenario may be whole with its values alone.
  std::vector<std::string> values;
  for (const SweepAxis& axis : axes) values.push_back(axis.values.front());
  const auto scenario = load_scenario(file, at_point(changes, axes, values));
  if (!scenario) return tl::unexpected(scenario.error());
  return scenario->scenario.serving && !trains(scenario->scenario);
}

Expected<Sweep> run_sweep(const std::string& file, const ScenarioChanges& changes,
                          const Sampling& sampling, const std::vector<SweepAxis>& axes,
                          const LoadedCatalog& catalog, const NetworkModel& network) {
  return run_points<Sweep>(
      file, changes, axes,
      [&](const ScenarioChanges& there, Sweep& sweep, SweepPoint& point) -> Expected<void> {
        const auto loaded = load_plan(file, there, catalog);
        if (!loaded) return tl::unexpected(loaded.error());
        sweep.scenario = loaded->plan.name;
        Forecast f = make_forecast(loaded->plan, network, forecast_options(sampling));
        if (f.feasible)
          point.forecast = std::move(f);
        else
          point.reason = does_not_fit(f);
        return {};
      });
}

Expected<ServingSweep> run_serving_sweep(const std::string& file, const ScenarioChanges& changes,
                                         const Sampling& sampling,
                                         const std::vector<SweepAxis>& axes,
                                         const LoadedCatalog& catalog) {
  return run_points<ServingSweep>(file, changes, axes,
                                  [&](const ScenarioChanges& there, ServingSweep& sweep,
                                      SweepPointOf<ServingForecast>& point) -> Expected<void> {
                                    const auto loaded = load_all(file, there, catalog);
                                    if (!loaded) return tl::unexpected(loaded.error());
                                    if (!loaded->serving) {
                                      point.reason = "it serves nothing";
                                      return {};
                                    }
                                    sweep.scenario = loaded->serving->origin.name;
                                    sweep.goal = loaded->serving->goal;
                                    point.forecast =
                                        forecast_serving(*loaded->serving, sampling.seed);
                                    return {};
                                  });
}

Expected<QueueSweep> run_queue_sweep(const std::string& file, const ScenarioChanges& changes,
                                     const Sampling& sampling, const std::vector<SweepAxis>& axes,
                                     const LoadedCatalog& catalog) {
  return run_points<QueueSweep>(file, changes, axes,
                                [&](const ScenarioChanges& there, QueueSweep& sweep,
                                    SweepPointOf<TraceResult>& point) -> Expected<void> {
                                  auto loaded = load_all(file, there, catalog);
                                  if (!loaded) return tl::unexpected(loaded.error());
                                  if (!loaded->trace) {
                                    point.reason = "it has no queue of jobs";
                                    return {};
                                  }
                                  sweep.scenario = loaded->file.scenario.name;
                                  point.forecast =
                                      answer_trace(std::move(*loaded->trace), sampling);
                                  return {};
                                });
}

}  // namespace reckon::cli
