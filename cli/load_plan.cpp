#include "cli/load.h"

#include <algorithm>

#include "cli/output.h"
#include "exchange/model_files.h"
#include "sim/calibration/calibration.h"
#include "sim/scenario/scenario_yaml.h"
#include "sim/serving/serving.h"
#include "sim/step/step.h"

namespace reckon::cli {
namespace {

bool asks_whether_feasible(const Plan& plan) {
  return std::any_of(plan.expect.begin(), plan.expect.end(),
                     [](const Expectation& e) { return e.metric == Metric::feasible; });
}

Expected<ScenarioFile> with_model_files(Expected<ScenarioFile> scenario) {
  if (!scenario) return scenario;
  Diagnostics unread = resolve_model_files(*scenario);
  if (!unread.empty()) return tl::unexpected(std::move(unread));
  return scenario;
}

}  // namespace

Expected<Catalog> load_catalogs(const Options& options) {
  std::vector<std::filesystem::path> layers{default_catalog_directory()};
  if (layers.front().empty())
    throw std::runtime_error("the catalogs are not found; set RECKON_CATALOGS to their directory");
  layers.insert(layers.end(), options.catalogs.begin(), options.catalogs.end());
  auto catalog = load_catalog(layers);
  if (!catalog) return catalog;
  Diagnostics problems;
  for (const std::filesystem::path& file : options.calibrations) {
    const auto calibration = parse_calibration(file.string(), read_text(file));
    const Diagnostics found = calibration ? lay_over(*catalog, *calibration) : calibration.error();
    problems.insert(problems.end(), found.begin(), found.end());
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return catalog;
}

Expected<ScenarioFile> load_scenario(const std::string& file, const Options& options) {
  return with_model_files(read_scenario(file, options.overrides, options.layers));
}

Expected<ScenarioFile> load_scenario_text(std::string_view text, const std::string& file,
                                          const Options& options) {
  return with_model_files(parse_scenario(text, file, options.overrides, options.layers));
}

Expected<LoadedPlan> read_plan(const std::string& file, const Options& options,
                               const Catalog& catalog) {
  auto scenario = load_scenario(file, options);
  if (!scenario) return tl::unexpected(std::move(scenario.error()));
  auto plan = make_plan(*scenario, catalog);
  if (!plan) return tl::unexpected(std::move(plan.error()));
  return LoadedPlan{std::move(*scenario), std::move(*plan)};
}

namespace {

Diagnostics memory_problems(const Plan& plan, const ScenarioFile& file, const Catalog& catalog) {
  Diagnostics problems;
  if (asks_whether_feasible(plan)) return problems;
  for (const PlannedWorkload& job : plan.jobs) {
    if (job.same_as) continue;
    const Places places = file.places.with_alias(job.path, "workload");
    if (auto problem = check_memory(plan, job, catalog, places))
      problems.push_back(std::move(*problem));
  }
  return problems;
}

void add_new(Diagnostics& all, const Diagnostics& more) {
  for (const Diagnostic& d : more)
    if (std::find(all.begin(), all.end(), d) == all.end()) all.push_back(d);
}

}  // namespace

Expected<LoadedPlan> load_plan(const std::string& file, const Options& options,
                               const Catalog& catalog) {
  auto loaded = read_plan(file, options, catalog);
  if (!loaded) return loaded;
  Diagnostics problems = memory_problems(loaded->plan, loaded->file, catalog);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return loaded;
}

Expected<LoadedScenario> load_all(const std::string& file, const Options& options,
                                  const Catalog& catalog) {
  auto scenario = load_scenario(file, options);
  if (!scenario) return tl::unexpected(std::move(scenario.error()));
  LoadedScenario loaded;
  loaded.file = std::move(*scenario);
  const Scenario& asked = loaded.file.scenario;
  Diagnostics problems;
  if (trains(asked) || !asked.serving) {
    auto plan = make_plan(loaded.file, catalog);
    add_new(problems, plan ? memory_problems(*plan, loaded.file, catalog) : plan.error());
    if (plan) loaded.plan = std::move(*plan);
  }
  if (asked.serving) {
    auto serving = make_serving_plan(loaded.file, catalog);
    if (!serving)
      add_new(problems, serving.error());
    else if (auto problem = check_serving_memory(*serving, loaded.file.places))
      add_new(problems, {std::move(*problem)});
    if (serving) loaded.serving = std::move(*serving);
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return loaded;
}

void report(const Diagnostics& diagnostics) { print_error(format(diagnostics)); }

}  // namespace reckon::cli
