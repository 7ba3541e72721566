#include "report/explain/explain.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/errors.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "report/explain/evidence.h"
#include "sim/catalog/operations_keys.h"
#include "sim/forecast/explain/restarts.h"
#include "sim/scenario/resolve/draft.h"

namespace reckon::cli {
namespace {

struct ExplainOptions : Files, AnswerFormat, ScenarioChanges, NetworkChoice, CatalogChoice {
  std::string plot;  // a file to write; "": none

  std::vector<Option> declared() {
    Option evidence = evidence_option();
    evidence.text.value = "[FILE.csv]";
    evidence.text.help =
        "list the comparable runs; with FILE.csv add its measured runs to the catalog's evidence "
        "(repeatable)";
    return {format_option(),  set_option(),         layer_option(), engine_option(),
            catalog_option(), calibration_option(), evidence,       without_evidence_option(),
            plot_option(plot)};
  }
  void check() const {
    if (files.size() > 1)
      throw UsageError("explain takes one scenario file; for several use 'reckon compare'");
  }
};

struct Asked {
  bool lists_evidence = false;
  std::vector<std::string> arguments;  // without an --evidence that names no file
};
/// `--evidence` by itself lists the runs; with a table behind it (FILE.csv) its runs are taken too.
Asked asked_of(std::span<const std::string> arguments) {
  Asked asked;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const bool bare = arguments[k] == "--evidence" &&
                      (k + 1 == arguments.size() || !arguments[k + 1].ends_with(".csv"));
    asked.lists_evidence = asked.lists_evidence || arguments[k].starts_with("--evidence");
    if (!bare) asked.arguments.push_back(arguments[k]);
  }
  return asked;
}

constexpr std::string_view kNothingComparable =
    "no published run is evidence for this job (processors, a calibration, or --without-evidence "
    "all)";

/// The runs that the step rests on, as a table and as a picture.
void tell_evidence(const Explanation& e, const Asked& asked, const ExplainOptions& options) {
  if (!options.plot.empty() && !e.evidence)
    throw UsageError("--plot: " + std::string(kNothingComparable));
  if (!options.plot.empty()) write_file(options.plot, evidence_svg(*e.evidence, e.scenario));
  if (asked.lists_evidence && options.format != OutputFormat::json)
    print(e.evidence ? evidence_table(*e.evidence)
                     : fmt::format("\nComparable runs\n  {}\n", kNothingComparable));
}

}  // namespace

std::vector<OptionText> explain_options() { return shown_options<ExplainOptions>(); }

int run_explain(const Command& self, std::span<const std::string> arguments) {
  const Asked asked = asked_of(arguments);
  const auto options = parse<ExplainOptions>(self, asked.arguments);
  if (!options) return kDone;
  const auto catalog = checked(load_catalogs(*options));
  const auto loaded = checked(load_plan(options->files.front(), *options, catalog));
  // Of several jobs the first one's step: `--set` changes it like any other value.
  Plan plan = plan_of_job(loaded.plan, 0);
  if (loaded.plan.jobs.size() > 1) plan.name += ", job " + plan.only_job().name;
  const Places places = loaded.file.places.with_alias(plan.only_job().path, "workload");
  // Where `expect` speaks of feasible, load_plan lets through what does not fit: here there is no
  // step to explain.
  if (auto problem = check_memory(plan, plan.only_job(), catalog, places)) {
    report({std::move(*problem)});
    return kInputIsWrong;
  }
  const auto network = make_network(*options);
  const Explanation explanation = explain(plan, *network);
  const std::vector<RestartChange> restarts = restarts_that_apply(
      plan, *network, planning::seconds_fact(catalog.operations.at(keys::kRegroup)));
  print(options->format == OutputFormat::json
            ? explain_json(explanation, restarts)
            : explain_table(explanation) + restarts_table(restarts));
  tell_evidence(explanation, asked, *options);
  return kDone;
}

}  // namespace reckon::cli
