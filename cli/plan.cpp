#include "report/plan.h"

#include <array>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/plan_question.h"
#include "planner/plan_file.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 27> kNames{
    "format", "model",     "tokens",      "epochs",   "dataset", "accelerator",  "provider",
    "region", "nodes",     "pricing",     "strategy", "layouts", "global-batch", "deadline",
    "budget", "objective", "plans",       "out",      "seed",    "replications", "set",
    "layer",  "catalog",   "calibration", "threads",  "svg",     "help"};

std::size_t plans_to_keep(const Options& options) {
  const std::string text = options.answer("plans");
  if (text.empty()) return 5;
  const auto n = parse_integer(text);
  if (!n || *n < 1 || *n > 1000)
    throw UsageError("--plans takes a whole number from 1 to 1000, not '" + text + "'");
  return std::size_t(*n);
}

}  // namespace

std::string plan_options() { return describe_options(kNames); }

int run_plan(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  planner::PlannerOptions how;
  how.keep = plans_to_keep(options);
  how.seed = options.seed;
  how.replications = options.replications;
  how.threads = options.threads;
  const auto catalog = load_catalogs(options);
  if (!catalog) {
    report(catalog.error());
    return kInputIsWrong;
  }
  const auto question = plan_question(options, *catalog);
  if (!question) {
    report(question.error());
    return kInputIsWrong;
  }
  const auto network = make_network(options);
  auto answer = planner::plan(*question, *catalog, *network, how);
  if (!answer) {
    report(answer.error());
    return kInputIsWrong;
  }
  planner::explain_choice(*question, *catalog, *network, how, *answer);
  const std::string out = options.answer("out");
  if (!out.empty() && !answer->plans.empty()) {
    const auto text = planner::plan_file(*question, answer->plans.front(), RECKON_VERSION,
                                         std::filesystem::path(out).parent_path());
    if (!text) {
      report(text.error());
      return kInputIsWrong;
    }
    write_file(out, *text);
  }
  if (const std::string svg = options.answer("svg"); !svg.empty())
    write_file(svg, front_svg(*answer));
  print(options.format == OutputFormat::json ? plan_json(*answer) : plan_table(*answer));
  return answer->infeasible ? kAnswerIsNo : kDone;
}

}  // namespace reckon::cli
