#include "report/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/plan/plan_fleet.h"
#include "cli/plan/plan_question.h"
#include "cli/plan/plan_serving.h"
#include "planner/baseline.h"
#include "planner/fewest.h"
#include "planner/fleet/fleet.h"
#include "planner/plan_file.h"
#include "report/memo.h"
#include "report/plan/fewest.h"
#include "report/plan/memo.h"
#include "sim/accuracy/plan_evidence.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 50> kPlanNames{"format",
                                                      "model",
                                                      "tokens",
                                                      "epochs",
                                                      "dataset",
                                                      "accelerator",
                                                      "machine",
                                                      "provider",
                                                      "region",
                                                      "zone",
                                                      "nodes",
                                                      "autoscaling",
                                                      "pricing",
                                                      "base",
                                                      "fallback",
                                                      "strategy",
                                                      "layouts",
                                                      "parameter-servers",
                                                      "parameter-server-machine",
                                                      "recompute",
                                                      "precision",
                                                      "global-batch",
                                                      "checkpoint-interval",
                                                      "checkpoint-storage",
                                                      "deadline",
                                                      "budget",
                                                      "quota",
                                                      "memory",
                                                      "max-nodes",
                                                      "residency",
                                                      "carbon-free",
                                                      "objective",
                                                      "plans",
                                                      "fewest",
                                                      "out",
                                                      "memo",
                                                      "svg",
                                                      "baseline",
                                                      "tolerance",
                                                      "diff",
                                                      "seed",
                                                      "replications",
                                                      "set",
                                                      "layer",
                                                      "catalog",
                                                      "calibration",
                                                      "evidence",
                                                      "without-evidence",
                                                      "threads",
                                                      "help"};

std::size_t plans_to_keep(const Options& options) {
  const std::string text = options.answer("plans");
  if (text.empty()) return 5;
  const auto n = parse_integer(text);
  if (!n || *n < 1 || *n > 1000)
    throw UsageError("--plans takes a whole number from 1 to 1000, not '" + text + "'");
  return std::size_t(*n);
}

double tolerance_of(const Options& options) {
  const std::string text = options.answer("tolerance");
  if (text.empty()) return 0;
  const auto share = parse_fraction(text);
  const bool percent = text.ends_with('%');
  if (!share || *share < 0 || (!percent && *share >= 1))  // 3 is meant as 3 %, not as 300
    throw UsageError("--tolerance takes a share such as 3%, not '" + text + "'");
  return *share;
}

/// Files that are read and written: an empty name is an unset variable of a script, and one that is
/// named twice would be lost.
void refuse_paths(const Options& options) {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::string, fs::path>> taken;
  const auto take = [&](const std::string& what, const std::string& path) {
    const fs::path place = fs::weakly_canonical(path);
    for (const auto& [other, there] : taken)
      if (there == place)
        throw UsageError(fmt::format("{} and {} are one file: {}", other, what, path));
    taken.emplace_back(what, place);
  };
  for (const std::string& file : options.files) take("the question", file);
  if (!options.memo.empty()) take("--memo", options.memo);
  for (const char* name : {"baseline", "out", "svg", "diff"}) {
    const auto given = options.answers.find(name);
    if (given == options.answers.end()) continue;
    if (given->second.empty()) throw UsageError(fmt::format("--{} needs the name of a file", name));
    take(fmt::format("--{}", name), given->second);
  }
}

void refuse_combinations(const Options& options) {
  if (options.answer("baseline").empty())
    for (const char* option : {"tolerance", "diff"})
      if (!options.answer(option).empty())
        throw UsageError(fmt::format("--{} speaks of a --baseline, which is missing", option));
  if (options.answer("fewest").empty()) return;
  for (const char* option : {"baseline", "out", "svg", "plans"})
    if (!options.answer(option).empty())
      throw UsageError(fmt::format("--fewest makes no ranked plans: leave --{} out", option));
  if (!options.memo.empty()) throw UsageError("--fewest makes no ranked plans: leave --memo out");
}

/// All that one question is answered with.
struct Setting {
  const Options& options;
  const planner::Question& question;
  const Catalog& catalog;
  const NetworkModel& network;
  planner::PlannerOptions how;
};

/// The setting's, telling `line`, which is gone before anything is printed, how far the search is.
planner::PlannerOptions watched(const Setting& s, ProgressLine& line) {
  planner::PlannerOptions how = s.how;
  if (const auto show = line.text_callback())
    how.progress = [show](const planner::SearchProgress& p) {
      std::string text =
          fmt::format("{} considered, {} pruned, {} racing", p.considered, p.pruned, p.racing);
      if (std::isfinite(p.best)) text += fmt::format(", best score so far {:.4g}", p.best);
      show(text);
    };
  return how;
}

Expected<planner::Answer> search(const Setting& s) {
  ProgressLine line;
  return planner::plan(s.question, s.catalog, s.network, watched(s, line));
}

Expected<int> answer_fewest(const Setting& s) {
  const auto answer = planner::fewest(s.question, s.catalog, s.network, s.how);
  if (!answer) return tl::unexpected(answer.error());
  print(s.options.format == OutputFormat::json ? fewest_json(*answer) : fewest_table(*answer));
  return answer->meets_all() ? kDone : kAnswerIsNo;
}

/// What the assumptions of the first plan do to it, where somebody reads that; no digit of its
/// forecast changes.
void add_effects(const Setting& s, const Plan& best, planner::Answer& answer) {
  if (s.options.format != OutputFormat::json && s.options.memo.empty()) return;
  ForecastOptions how;
  how.seed = answer.seed;
  how.replications = answer.replications;
  how.threads = s.how.threads;
  answer.plans.front().result.forecast = make_forecast(best, s.network, how);
}

/// The files of --out, --memo and --svg.
Expected<void> write_files(const Setting& s, const planner::Answer& answer,
                           const std::optional<Plan>& best) {
  if (const std::string svg = s.options.answer("svg"); !svg.empty())
    write_file(svg, front_svg(answer));
  if (!best) return {};
  if (const std::string out = s.options.answer("out"); !out.empty()) {
    const auto text = planner::plan_file(s.question, answer.plans.front(), *best, RECKON_VERSION,
                                         std::filesystem::path(out).parent_path());
    if (!text) return tl::unexpected(text.error());
    write_file(out, *text);
  }
  if (s.options.memo.empty()) return {};
  const Forecast& forecast = answer.plans.front().result.forecast;
  const std::string question = s.question.base.is_file ? question_of(s.question.base.text) : "";
  write_file(s.options.memo, plan_memo({answer, *best, forecast, question}));
  return {};
}

/// What --baseline names; nullopt: it was not given.
Expected<std::optional<planner::Baseline>> baseline_of(const Setting& s) {
  const std::string path = s.options.answer("baseline");
  if (path.empty()) return std::nullopt;
  Options as_it_stands = s.options;
  as_it_stands.overrides.clear();
  as_it_stands.layers.clear();
  auto file = load_scenario(path, as_it_stands);
  if (!file) return tl::unexpected(std::move(file.error()));
  auto baseline = planner::read_baseline(s.question, std::move(*file), s.catalog);
  if (!baseline) return tl::unexpected(std::move(baseline.error()));
  return std::optional(std::move(*baseline));
}

/// The plans, then the baseline; the exit code.
int print_answer(const Setting& s, const planner::Answer& answer, const BaselineInputs* held) {
  if (s.options.format == OutputFormat::json) {
    print(plan_json(answer, held));
  } else {
    print(plan_table(answer));
    if (held != nullptr) print(baseline_text(*held));
  }
  if (held != nullptr)
    if (const std::string diff = s.options.answer("diff"); !diff.empty())
      write_file(diff, baseline_markdown(*held));
  return answer.infeasible || (held != nullptr && held->verdict.worse) ? kAnswerIsNo : kDone;
}

Expected<int> answer_question(const Setting& s) {
  const double tolerance = tolerance_of(s.options);
  auto baseline = baseline_of(s);
  if (!baseline) return tl::unexpected(std::move(baseline.error()));
  auto answer = search(s);
  if (!answer) return tl::unexpected(std::move(answer.error()));
  planner::explain_choice(s.question, s.catalog, s.network, s.how, *answer);
  std::optional<Plan> best;
  if (!answer->plans.empty()) {
    auto resolved = planner::resolve(s.question, answer->plans.front(), s.catalog);
    if (!resolved) return tl::unexpected(std::move(resolved.error()));
    best = std::move(*resolved);
    if (s.question.base.evidence != nullptr) add_trial(*best, *s.question.base.evidence);
    answer->plans.front().result.forecast.evidence = best->evidence;
    add_effects(s, *best, *answer);
  }
  const Plan* const todays = best ? &*best : nullptr;
  if (*baseline)
    if (const auto judged =
            judge_today(**baseline, s.question, *answer, todays, s.network, s.how.threads);
        !judged)
      return tl::unexpected(judged.error());
  if (const auto written = write_files(s, *answer, best); !written)
    return tl::unexpected(written.error());
  if (!*baseline) return print_answer(s, *answer, nullptr);
  const auto verdict = planner::held_against_baseline(*answer, **baseline, tolerance);
  const BaselineInputs held{*answer, **baseline, verdict, tolerance, todays};
  return print_answer(s, *answer, &held);
}

}  // namespace

std::vector<OptionText> plan_options() { return describe_options(kPlanNames); }

int run_plan(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kPlanNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  refuse_paths(options);
  refuse_combinations(options);
  planner::PlannerOptions how;
  how.keep = plans_to_keep(options);
  how.seed = options.seed;
  how.replications = options.replications;
  how.threads = options.threads;
  const auto catalog = checked(load_catalogs(options));
  auto base = checked(plan_base(options, catalog));
  base.evidence = catalog.evidence();
  const auto network = make_network(options);
  int served = kDone;
  if (const auto file = planner::read(base); file && asks_for_service(*file)) {
    served = checked(answer_service(options, *file, catalog));
    if (!trains(file->scenario)) return served;
    checked(leave_training(base));
    print("\nTo train\n");
  }
  if (const auto file = planner::read(base); file && planner::is_fleet(*file)) {
    return std::max(checked(answer_fleet(options, base, catalog, *network)), served);
  }
  const auto question = checked(planner::make_question(std::move(base), catalog));
  const Setting setting{options, question, catalog, *network, how};
  const int code =
      checked(options.answer("fewest").empty() ? answer_question(setting) : answer_fewest(setting));
  return std::max(code, served);
}

}  // namespace reckon::cli
