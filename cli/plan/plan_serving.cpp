#include "cli/plan/plan_serving.h"

#include "cli/command.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "planner/serving.h"
#include "report/plan/serving.h"
#include "sim/scenario/training_text.h"

namespace reckon::cli {
namespace {

/// Canonical names of plan.vary.accelerator, which --accelerator writes too. Unknown ones are
/// reported by name: nothing would match them.
std::vector<std::string> accelerators_of(const Scenario& scenario, const Catalog& catalog) {
  std::vector<std::string> names;
  if (trains(scenario) || !scenario.plan) return names;
  const auto vary = scenario.plan->vary.find("accelerator");
  if (vary == scenario.plan->vary.end()) return names;
  for (const std::string& name : vary->second) {
    const Accelerator* found = catalog.find_accelerator(name);
    if (found == nullptr) throw UsageError("unknown accelerator '" + name + "'");
    names.push_back(found->name);
  }
  return names;
}

}  // namespace

bool asks_for_service(const ScenarioFile& file) {
  return file.scenario.serving && !file.scenario.serving->goal.empty();
}

Expected<int> answer_service(const PlanOptions& options, const ScenarioFile& file,
                             const Catalog& catalog) {
  const bool json = options.format == OutputFormat::json;
  if (json && trains(file.scenario))
    throw UsageError(
        "--format json answers one question: leave serving.goal or the training out with a layer");
  planner::ServingQuestion question;
  question.accelerators = accelerators_of(file.scenario, catalog);
  question.seed = options.seed;
  const auto answer = planner::plan_serving(file, catalog, question);
  if (!answer) return tl::unexpected(answer.error());
  print(json ? serving_plan_json(*answer) : serving_plan_table(*answer));
  return answer->choices.empty() ? kAnswerIsNo : kDone;
}

Expected<void> leave_training(planner::Base& base) {
  auto text = training_text(base.text, base.name, base.overrides, base.layers);
  if (!text) return tl::unexpected(std::move(text.error()));
  base.text = std::move(*text);
  base.overrides.clear();
  base.layers.clear();
  return {};
}

}  // namespace reckon::cli
