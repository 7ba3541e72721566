#include "report/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/plan/lock.h"
#include "cli/plan/plan_answer.h"
#include "cli/plan/plan_fleet.h"
#include "cli/plan/plan_locked.h"
#include "cli/plan/plan_options.h"
#include "cli/plan/plan_question.h"
#include "cli/plan/plan_queue.h"
#include "cli/plan/plan_serving.h"
#include "planner/baseline.h"
#include "planner/fewest.h"
#include "planner/fleet/fleet.h"
#include "planner/plan_file.h"
#include "report/memo/memo.h"
#include "report/plan/fewest.h"
#include "report/plan/memo.h"
#include "sim/base/text/shell_word.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

LockedQuestion locked(const PlanSetting& s) {
  return {s.options, s.question, s.catalog, s.network, s.how};
}

/// Tells on a line that is gone before anything is printed how far it is.
Expected<AnsweredPlan> watched_answer(const PlanSetting& s) {
  ProgressLine line;
  return answer_plan(s, line.text_callback());
}

Expected<int> answer_fewest(const PlanSetting& s) {
  const auto answer = planner::fewest(s.question, s.catalog, s.network, s.how);
  if (!answer) return tl::unexpected(answer.error());
  print(s.options.format == OutputFormat::json ? fewest_json(*answer) : fewest_table(*answer));
  return answer->meets_all() ? kDone : kAnswerIsNo;
}

/// Beside the scenario that people review, what `reckon run` runs without resolving it again. The
/// two can be moved together.
Expected<void> write_plan_artifact(const std::string& scenario, const Plan& best) {
  auto file = load_scenario(scenario, {});
  if (!file) return tl::unexpected(std::move(file.error()));
  RunArtifact artifact = artifact_of({std::move(*file), best}, scenario, {});
  artifact.file = std::filesystem::path(scenario).filename().string();
  write_file(artifact_beside(scenario).string(), write_artifact(artifact));
  return {};
}

/// The files of --out, --memo and --svg.
Expected<void> write_files(const PlanSetting& s, const planner::Answer& answer,
                           const std::optional<Plan>& best) {
  if (!s.options.svg.empty()) write_file(s.options.svg, front_svg(answer));
  if (!best) return {};
  if (const std::string& out = s.options.out; !out.empty()) {
    const auto text = planner::plan_file(s.question, answer.plans.front(), *best, RECKON_VERSION,
                                         std::filesystem::path(out).parent_path());
    if (!text) return tl::unexpected(text.error());
    write_file(out, *text);
    if (auto written = write_plan_artifact(out, *best); !written) return written;
  }
  if (s.options.lock)
    if (auto written = write_plan_lock(locked(s), answer, *best); !written) return written;
  if (s.options.memo.empty()) return {};
  const Forecast& forecast = answer.plans.front().result.forecast;
  const std::string question = s.question.base.is_file ? question_of(s.question.base.text) : "";
  write_file(s.options.memo, plan_memo({answer, *best, forecast, question}));
  return {};
}

/// What --baseline names.
struct Held {
  planner::Baseline baseline;
  std::optional<planner::Lock> lock;  // nullopt: it is a plan's file
};

Expected<planner::Lock> lock_with_plan(const std::string& name, std::string_view bytes) {
  auto lock = planner::read_lock(bytes, name);
  if (lock && !lock->plan)
    return tl::unexpected(Diagnostics{{Severity::error,
                                       {name, 0, 0},
                                       "the lock holds no plan",
                                       "write it with reckon plan FILE --lock"}});
  return lock;
}

/// nullopt: it was not given.
Expected<std::optional<Held>> baseline_of(const PlanSetting& s) {
  const std::string& name = s.options.baseline;
  if (name.empty()) return std::nullopt;
  Held held;
  std::error_code error;
  const std::string bytes = std::filesystem::is_regular_file(name, error) ? read_text(name) : "";
  const bool is_lock = planner::is_lock(bytes);
  if (is_lock) {
    auto lock = lock_with_plan(name, bytes);
    if (!lock) return tl::unexpected(std::move(lock.error()));
    held.lock = std::move(*lock);
  }
  auto file =
      is_lock ? load_scenario_text(held.lock->plan->file, name, {}) : load_scenario(name, {});
  if (!file) return tl::unexpected(std::move(file.error()));
  auto baseline = planner::read_baseline(s.question, std::move(*file), s.catalog);
  if (!baseline) return tl::unexpected(std::move(baseline.error()));
  held.baseline = std::move(*baseline);
  return std::optional(std::move(held));
}

/// The plans, then the baseline; the exit code.
int print_answer(const PlanSetting& s, const planner::Answer& answer, const BaselineInputs* held) {
  if (s.options.format == OutputFormat::json) {
    print(plan_json(answer, held));
  } else {
    print(plan_table(answer));
    if (held != nullptr) print(baseline_text(*held));
  }
  if (held != nullptr && !s.options.diff.empty())
    write_file(s.options.diff, baseline_markdown(*held));
  const bool no = held != nullptr && held->since != nullptr
                      ? held->verdict.fails()
                      : answer.infeasible || (held != nullptr && held->verdict.worse);
  return no ? kAnswerIsNo : kDone;
}

Expected<int> answer_question(const PlanSetting& s) {
  const double tolerance = s.options.tolerance.value_or(0);
  auto against = baseline_of(s);
  if (!against) return tl::unexpected(std::move(against.error()));
  auto answered = watched_answer(s);
  if (!answered) return tl::unexpected(std::move(answered.error()));
  auto& [answer, best] = *answered;
  const Plan* const todays = best ? &*best : nullptr;
  if (*against)
    // What is trained may be the edit that a lock tells of.
    if (const auto judged =
            judge_today((*against)->baseline, s.question, answer,
                        (*against)->lock ? nullptr : todays, s.network, s.how.threads);
        !judged)
      return tl::unexpected(judged.error());
  if (const auto written = write_files(s, answer, best); !written)
    return tl::unexpected(written.error());
  if (!*against) return print_answer(s, answer, nullptr);
  const Held& of = **against;
  std::optional<AttributedScore> since;
  if (of.lock) {
    auto attributed = attribute_score(locked(s), *of.lock, answer);
    if (!attributed) return tl::unexpected(std::move(attributed.error()));
    since = std::move(*attributed);
  }
  const auto verdict = planner::held_against_baseline(answer, of.baseline, tolerance,
                                                      since ? &since->score : nullptr);
  const BaselineInputs held{answer,    of.baseline, verdict,
                            tolerance, todays,      since ? &since->since : nullptr};
  return print_answer(s, answer, &held);
}

}  // namespace

std::vector<OptionText> plan_options() { return shown_options<PlanOptions>(); }

int run_plan(const Command& self, std::span<const std::string> arguments) {
  const auto given = parse<PlanOptions>(self, arguments);
  if (!given) return kDone;
  const PlanOptions& options = *given;
  const auto catalog = checked(load_catalogs(options));
  auto base = checked(plan_base(options, catalog));
  base.words.plan_command = "reckon plan";
  for (const std::string& argument : arguments)
    base.words.plan_command += " " + shell_word(argument);
  const auto profile = checked(profile_of(base, catalog));
  base.evidence = profile ? profile.get() : catalog.evidence();
  const auto network = make_network({});
  const auto by_option = [&](Diagnostics problems) {
    return told_by_option(std::move(problems), options);
  };
  auto file = planner::read(base);  // where it cannot be read make_question() says why
  if (file && file->scenario.of_queue() && base.is_file)
    return checked(answer_nodes(options, *file, catalog));
  if (!options.limit.empty()) {
    checked(std::move(file).map_error(by_option));
    throw UsageError(
        "--limit needs a scenario of jobs that share a cluster: trace:, arrivals: or jobs:");
  }
  int served = kDone;
  if (file && asks_for_service(*file)) {
    served = checked(answer_service(options, *file, catalog));
    if (!trains(file->scenario)) return served;
    checked(leave_training(base));
    file = planner::read(base);
    print("\nTo train\n");
  }
  if (file && planner::is_fleet(*file))
    return std::max(checked(answer_fleet(options, base, catalog, *network)), served);
  const auto question =
      checked(planner::make_question(std::move(base), catalog).map_error(by_option));
  const PlanSetting setting{options, question, catalog, *network, planner_options(options)};
  const int code = checked(options.fewest ? answer_fewest(setting) : answer_question(setting));
  return std::max(code, served);
}

}  // namespace reckon::cli
