#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "cli/command.h"
#include "cli/history/history_store.h"
#include "cli/load/load.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/run/bound_here.h"
#include "cli/run/replan.h"
#include "cli/run/run_kubernetes.h"
#include "cli/run/run_options.h"
#include "cli/run/run_parts.h"
#include "cli/run/run_resume.h"
#include "executor/launch/local/job.h"
#include "executor/launch/local/run.h"
#include "executor/train/stop_signal.h"
#include "report/json.h"
#include "report/run/metrics.h"
#include "report/run/status.h"
#include "report/table.h"
#include "sim/measurement/rebind.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

/// What every process is told beside the plan that it reads.
std::vector<std::string> worker_arguments(const RunOptions& options,
                                          const RunDirectory& directory) {
  std::vector<std::string> words{directory.plan().string()};
  std::ranges::move(worker_words(options), std::back_inserter(words));
  words.emplace_back("--out");
  words.push_back(directory.root.string());
  if (options.accept_changes) words.emplace_back("--accept-changes");
  return words;
}

LocalRunOptions run_options(const RunOptions& options, const RunArtifact& artifact,
                            const Forecast& forecast) {
  const Plan& plan = artifact.plan;
  LocalRunOptions run;
  run.directory = directory_of(options, plan);
  if (artifact.container)
    run.foreign = LocalProgram{*artifact.container, progress_of(*artifact.container)};
  else
    run.worker = find_worker();
  run.plan = write_artifact(artifact);
  run.digests = digests_of(artifact);
  std::error_code none;
  const fs::path before = run.directory.plan();
  const bool same = fs::is_regular_file(before, none) && read_text(before) == run.plan;
  if (!same) run.forecast_text = forecast_json(forecast);  // the first start's stays otherwise
  run.arguments = worker_arguments(options, run.directory);
  run.resume = options.resume;
  run.retry = retry_of(options, plan.retry);
  run.notice = options.notice;
  run.progress_deadline = progress_deadline(options.hang, forecast.step.step);
  run.patience = patience_with_program(options.hang);
  const bool never = run.progress_deadline == Seconds{0};
  run.start_deadline = never ? Seconds{0} : std::max(run.start_deadline, run.progress_deadline);
  run.deadline = deadline_of(options, plan);
  return run;
}

/// A run that goes on has the plan that it began with, as long as that is of the same scenario,
/// catalog and changes.
Rebound bound_as_before(Rebound bound, const RunDirectory& directory) {
  auto before = load_artifact(directory.plan().string());
  if (before && *before && !why_not_run(**before, "") && (*before)->artifact.rebound &&
      (*before)->artifact.rebound->from == bound.artifact.rebound->from)
    bound.artifact = std::move((*before)->artifact);
  return bound;
}

/// A part of the run, ready to be started: the plan as it is run here, and its forecast.
struct Part {
  RunOptions options;  // that make the plan
  Rebound here;
  Forecast forecast;
  std::optional<Usd> budget;
  const Plan& plan() const { return here.artifact.plan; }
};

/// Refused where the plan cannot be run. Does not fit in memory: the forecast is not feasible.
Part make_part(RunOptions options, const LoadedCatalog& catalog) {
  const std::string& file = options.files.front();
  auto loaded = checked(load_run(options, catalog));
  require_one_job(loaded, "a run");
  const std::optional<Usd> budget = budget_of(options, loaded);
  const RunArtifact planned = artifact_of(std::move(loaded), file, options);
  Rebound here = bound_to_this_machine(planned, catalog.operations);
  here.artifact.file = fs::absolute(scenario_text(file).value().file).string();  // it was read
  if (options.resume) here = bound_as_before(std::move(here), directory_of(options, planned.plan));
  if (Diagnostics errors = not_trained_here(here.artifact, file); !errors.empty())
    throw WrongInput(std::move(errors));
  tell_left_out(planned);
  Forecast forecast = forecast_with_effects(options, here.artifact.plan);
  if (forecast.feasible) keep_save_interval(here.artifact.plan, forecast);
  return {std::move(options), std::move(here), std::move(forecast), budget};
}

/// nullopt: it can't be run here.
std::optional<Part> part_as_decided(RunOptions options, const LoadedCatalog& catalog) {
  try {
    Part part = make_part(std::move(options), catalog);
    if (part.forecast.feasible) return part;
  } catch (const WrongInput&) {
    // It was when it was found: a file or this machine is another now.
  }
  return std::nullopt;
}

/// Starts the part and watches it to its end, or until it is to go on otherwise.
/// `begins`: is called when it has begun.
RunEnd run_part(const Part& part, LocalRunOptions run, Replanner& replanner, Display& display,
                MetricsServer* metrics, std::function<void()> begins = {}) {
  const Plan& plan = part.plan();
  run.budget = part.budget;
  run.stop_reason = [&] { return stop_requests() == 0 ? replanner.reason() : ""; };
  RunObserver observer;
  observer.status = [&](const RunStatus& s) {
    if (const auto begin = std::exchange(begins, nullptr)) begin();
    display.status(s);
    if (metrics != nullptr)
      metrics->publish(run_metrics(plan.name, s, std::chrono::system_clock::now()));
    replanner.look(s);
  };
  observer.output = [&](std::string_view process, std::string_view line) {
    display.line(fmt::format("[{}] {}", process, line));
  };
  observer.message = [&](const std::string& text) { display.line(text); };
  replanner.begin(part.options, part.here.artifact, run.directory);
  return run_locally(plan, part.forecast, run, observer, [&] {
    const StopRequest asked = requested_by_signals();
    return asked == StopRequest::none && replanner.stops() ? StopRequest::own : asked;
  });
}

/// Why a program of the user's has no steps.
std::string no_step_was_told(const ContainerSpec& program) {
  const auto log = program.metrics.find("log");
  return log != program.metrics.end()
             ? fmt::format(
                   "no line of the program matched workload.container.metrics.log, '{}': its steps "
                   "are not known",
                   log->second)
             : "no line of the program was read as a step: workload.container.metrics: {log: "
               "PATTERN} says how it prints them (docs/commands/run.md)";
}

bool goes_on(const RunEnd& end, const Replanner& replanner) {
  return replanner.stops() && end.end.verdict == Verdict::stopped && !end.budget_spent &&
         stop_requests() == 0;
}

int run_on_this_machine(const RunOptions& options, std::span<const std::string> arguments,
                        const LoadedCatalog& catalog) {
  Part part = make_part(as_decided(options, catalog), catalog);
  if (const auto& container = part.here.artifact.container;
      container && container->command.empty()) {
    print_error(
        "reckon: on this machine the container's image is not started, only its command, and "
        "workload.container has none\n");
    return kInputIsWrong;
  }
  if (!part.forecast.feasible) {
    print(forecast_table(part.forecast));
    return kInputIsWrong;
  }
  LocalRunOptions run = run_options(part.options, part.here.artifact, part.forecast);
  if (run.resume && !run.foreign &&
      !may_go_on(part.plan(), run.directory, options.accept_changes, arguments))
    return kInputIsWrong;

  watch_stop_signals();
  Display display;
  const auto metrics = metrics_server(options, display);
  Replanner replanner(options, {deadline_of(options, part.plan()), part.budget},
                      runs_here(arguments), catalog, display);
  RunEnd end = run_part(part, run, replanner, display, metrics.get(), [&] {
    if (!run.resume) keep(record_of(part.plan(), part.forecast, utc_now()));
  });
  while (goes_on(end, replanner)) {
    const bool as_begun = replanner.files_are_as_begun();
    display.line("the run " + replanner.reason());
    RunOptions next = part.options;
    part.options.resume = next.resume = true;
    std::ranges::move(replanner.take(), std::back_inserter(next.overrides));
    if (auto other = as_begun ? part_as_decided(std::move(next), catalog) : std::nullopt) {
      part = std::move(*other);
    } else {
      display.line("that plan cannot be made any more: the run goes on as it was");
      replanner.end();
    }
    run = run_options(part.options, part.here.artifact, part.forecast);
    end = run_part(part, run, replanner, display, metrics.get());
  }
  const Forecast& forecast = part.forecast;
  if (const auto& program = part.here.artifact.container;
      program && end.end.verdict == Verdict::finished && end.ran && end.status.steps_done == 0)
    display.line(no_step_was_told(*program));
  if (!end.ran && !end.budget_spent)
    display.line(finished_already(run.directory, end.status.steps));
  const WholeRun whole = keep_and_draw(part.plan(), forecast, run.directory, end,
                                       end.ran ? InHistory::yes : InHistory::no, part.here.run);
  if (end.end.verdict != Verdict::finished)
    display.line(how_to_go_on(part.plan(), run.directory, end, run.foreign.has_value(), arguments));
  if (options.format == OutputFormat::json)
    print(run_json(end, forecast, whole));
  else
    print(run_summary(end, forecast, whole) +
          (part.here.run ? own_evidence_sentence(part.here.evidence) : ""));
  return end.end.exit_code;
}

}  // namespace

std::vector<OptionText> run_options_text() { return shown_options<RunOptions>(); }

int run_run(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<RunOptions>(self, arguments);
  if (!options) return kDone;
  if (options->on == RunPlace::kubernetes) return run_in_cluster(*options, arguments);
  const auto catalog = checked(load_catalogs(*options));
  return run_on_this_machine(*options, arguments, catalog);
}

}  // namespace reckon::cli
