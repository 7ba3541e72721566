#include "cli/explore/explore_answers.h"

#include <fmt/format.h>

#include "cli/explore/explore_options.h"
#include "cli/options/usage_error.h"
#include "cli/plan/plan_answer.h"
#include "cli/plan/plan_question.h"
#include "cli/simulate/answer.h"
#include "planner/controls.h"
#include "report/plan/controls.h"
#include "report/plan/plan.h"
#include "sim/base/text/printable.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::cli {
namespace {

/// Of the planner: the file with its changes, and what it is compared with.
PlanOptions plan_options_of(const ExploreOptions& options, ScenarioChanges changes) {
  PlanOptions of;
  of.files = options.files;
  of.format = OutputFormat::json;
  static_cast<Sampling&>(of) = options;
  static_cast<ScenarioChanges&>(of) = std::move(changes);
  static_cast<CatalogChoice&>(of) = options;
  return of;
}

/// A base with its evidence, which lives as long as this does.
struct BaseWithEvidence {
  std::unique_ptr<const Evidence> profile;  // of a measured step; nullptr: the catalog's holds
  planner::Base base;
};
BaseWithEvidence base_of(const PlanOptions& options, const LoadedCatalog& catalog) {
  BaseWithEvidence out;
  out.base = checked(plan_base(options, catalog));
  out.profile = checked(profile_of(out.base, catalog));
  out.base.evidence = out.profile ? out.profile.get() : catalog.evidence();
  return out;
}

planner::Controls controls_for(const ExploreOptions& options, ScenarioChanges changes,
                               const LoadedCatalog& catalog, const NetworkModel& network,
                               int threads) {
  const PlanOptions of = plan_options_of(options, std::move(changes));
  const BaseWithEvidence with = base_of(of, catalog);
  return checked(planner::controls_of(with.base, catalog, network, threads));
}

}  // namespace

ExploreAnswers::ExploreAnswers(const ExploreOptions& options, const LoadedCatalog& catalog,
                               const NetworkModel& network)
    : options_(options), catalog_(catalog), network_(network) {}

ScenarioChanges ExploreAnswers::with(const Words& words) const {
  ScenarioChanges changes = options_;
  changes.overrides.insert(changes.overrides.end(), words.begin(), words.end());
  return changes;
}

std::string ExploreAnswers::simulate(const Words& words, std::optional<int> replications) const {
  const auto loaded = checked(load_all(options_.file(), with(words), catalog_));
  if (loaded.trace)
    throw UsageError("a page explores one training or service, and this scenario is a trace");
  Sampling sampling = options_;
  if (replications) sampling.replications = replications;
  return answer_text(answer_scenario(loaded, network_, sampling), OutputFormat::json);
}

std::string ExploreAnswers::plan(const Words& words) const {
  const PlanOptions of = plan_options_of(options_, with(words));
  BaseWithEvidence with = base_of(of, catalog_);
  const auto question = checked(planner::make_question(std::move(with.base), catalog_));
  const auto network = make_network({});
  const PlanSetting setting{of, question, catalog_, *network, planner_options(of)};
  return plan_json(checked(answer_plan(setting)).answer, nullptr);
}

/// On one thread: a forecast may be asked for at the same time.
std::string ExploreAnswers::controls(const Words& words) const {
  return controls_json(controls_for(options_, with(words), catalog_, network_, 1));
}
std::string ExploreAnswers::controls_as_table() const {
  return controls_table(controls_for(options_, with({}), catalog_, network_, options_.threads));
}

std::string ExploreAnswers::scenario(const Words& words) const {
  ScenarioChanges changes = with(words);
  if (options_.seed) changes.overrides.push_back(fmt::format("forecast.seed={}", *options_.seed));
  if (options_.replications)
    changes.overrides.push_back(fmt::format("forecast.replications={}", *options_.replications));
  const ScenarioText of = checked(scenario_text(options_.file()));
  return fmt::format(
             "# Made by `reckon explore` from {}. `reckon simulate` on this file gives the page's\n"
             "# forecast. Relative paths in it count from the folder of that file.\n",
             printable(options_.file())) +
         checked(flat_scenario(of.text, of.file, changes.overrides, changes.layers, {}));
}

}  // namespace reckon::cli
