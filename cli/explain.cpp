#include "report/explain.h"

#include <array>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 7> kExplainNames{"format",  "set",         "layer", "engine",
                                                        "catalog", "calibration", "help"};

}  // namespace

std::string explain_options() { return describe_options(kExplainNames); }

int run_explain(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kExplainNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (options.files.size() > 1)
    throw UsageError("explain takes one scenario file; for several use 'reckon compare'");
  const auto catalog = checked(load_catalogs(options));
  const auto loaded = checked(load_plan(options.files.front(), options, catalog));
  // Of several jobs the first one's step: `--set` changes it like any other value.
  Plan plan = plan_of_job(loaded.plan, 0);
  if (loaded.plan.jobs.size() > 1) plan.name += ", job " + plan.jobs.front().name;
  const Places places = loaded.file.places.with_alias(plan.jobs.front().path, "workload");
  // Where `expect` speaks of feasible, load_plan lets through what does not fit: here there is no
  // step to explain.
  if (auto problem = check_memory(plan, plan.jobs.front(), catalog, places)) {
    report({std::move(*problem)});
    return kInputIsWrong;
  }
  const auto network = make_network(options);
  const Explanation explanation = explain(plan, *network);
  print(options.format == OutputFormat::json ? explain_json(explanation)
                                             : explain_table(explanation));
  return kDone;
}

}  // namespace reckon::cli
