#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/command.h"
#include "cli/history_store.h"
#include "cli/load.h"
#include "cli/machine_store.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run/run_kubernetes.h"
#include "cli/run/run_parts.h"
#include "cli/run/run_resume.h"
#include "executor/launch/local_job.h"
#include "executor/launch/local_run.h"
#include "executor/train/graph_runtime.h"
#include "executor/train/stop_signal.h"
#include "report/json.h"
#include "report/run/metrics.h"
#include "report/run/status.h"
#include "report/table.h"
#include "sim/measurement/rebind.h"
#include "sim/scenario/resolve/here.h"
#include "sim/step/measured_compute.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 31> kRunNames{
    "on",          "context",       "namespace",
    "image",       "pull-secret",   "bucket",
    "claim",       "storage-class", "dry-run",
    "attach",      "pending",       "checkpoint-steps",
    "out",         "resume",        "accept-changes",
    "deadline",    "notice",        "retries",
    "retry-delay", "hang",          "metrics",
    "token-file",  "format",        "set",
    "layer",       "seed",          "replications",
    "catalog",     "calibration",   "threads",
    "help"};

/// What every process is told beside the plan that it reads.
std::vector<std::string> worker_arguments(const Options& options, const RunDirectory& directory) {
  std::vector<std::string> words{directory.plan().string()};
  const auto add = [&](const char* name, const std::string& value) {
    words.emplace_back(name);
    words.push_back(value);
  };
  if (const auto found = options.answers.find("checkpoint-steps"); found != options.answers.end())
    add("--checkpoint-steps", found->second);
  add("--out", directory.root.string());
  if (options.answers.contains("accept-changes")) words.emplace_back("--accept-changes");
  return words;
}

LocalRunOptions run_options(const Options& options, const RunArtifact& artifact,
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
  run.resume = options.answers.contains("resume");
  run.retry = retry_of(options, plan.retry);
  run.notice = duration_option(options, "notice").value_or(Seconds{30});
  // Long enough for a slow machine, short against what a hang would cost.
  constexpr double kSlowerThanForecast = 20;
  run.progress_deadline =
      duration_option(options, "hang")
          .value_or(std::max(Seconds{60}, kSlowerThanForecast * forecast.step.step));
  run.start_deadline = std::max(run.start_deadline, run.progress_deadline);
  run.deadline = deadline_of(options, plan);
  return run;
}

/// Passes that are worth measuring before a run: of what our worker can run, and not for long.
bool worth_measuring(const PlannedWorkload& job, Seconds modelled) {
  constexpr Seconds kLongest{1.5};
  return modelled < kLongest && cannot_run(job.model).empty();
}

Rebound bound_to_this_machine(const RunArtifact& planned, const OperationalDefaults& operations) {
  const bool computes_here = !planned.container && computes_on_processors(planned.plan);
  auto machine = computes_here ? MachineStore::open() : std::optional<MachineStore>{};
  const std::vector<OwnRun> runs = machine ? runs_kept() : std::vector<OwnRun>{};
  ThisMachine here{.operations = &operations, .name = {}, .rates = {}, .passes = {}, .runs = runs};
  if (machine) {
    here.name = machine->name();
    here.rates = &machine->rates();
    here.passes = [&](const PlannedPool& workers, const PlannedWorkload& job) {
      return worth_measuring(job, passes_time(workers, job))
                 ? std::optional(machine->passes({.model = &job.model,
                                                  .batch = job.batch_per_accelerator,
                                                  .recompute = job.strategy.recompute,
                                                  .threads = workers.measured_rates->threads,
                                                  .processes = job.strategy.workers}))
                 : std::nullopt;
    };
  }
  return rebind(planned, here);
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

int run_plan(const Options& options, std::span<const std::string> arguments,
             const LoadedCatalog& catalog) {
  const std::string& file = options.files.front();
  auto loaded = checked(load_plan(file, options, catalog));
  if (options.seed) loaded.plan.seed = *options.seed;
  const RunArtifact planned = artifact_of(std::move(loaded), file, options);
  if (planned.container && planned.container->command.empty()) {
    print_error(
        "reckon: on this machine the container's image is not started, only its command, and "
        "workload.container has none\n");
    return kInputIsWrong;
  }
  Rebound here = bound_to_this_machine(planned, catalog.operations);
  if (options.answers.contains("resume"))
    here = bound_as_before(std::move(here), directory_of(options, planned.plan));
  const Forecast forecast = forecast_of(options, here.artifact.plan);
  if (!forecast.feasible) {
    print(forecast_table(forecast));
    return kInputIsWrong;
  }
  keep_save_interval(here.artifact.plan, forecast);
  const Plan& plan = here.artifact.plan;
  const LocalRunOptions run = run_options(options, here.artifact, forecast);
  if (run.resume && !run.foreign &&
      !may_go_on(plan, run.directory, options.answers.contains("accept-changes"), arguments))
    return kInputIsWrong;

  Display display;
  const auto metrics = metrics_server(options, display);
  RunObserver observer;
  observer.status = [&](const RunStatus& s) {
    display.status(s);
    if (metrics) metrics->publish(run_metrics(plan.name, s, std::chrono::system_clock::now()));
  };
  observer.output = [&](std::string_view process, std::string_view line) {
    display.line(fmt::format("[{}] {}", process, line));
  };
  observer.message = [&](const std::string& text) { display.line(text); };
  watch_stop_signals();
  if (!run.resume) keep(record_of(plan, forecast, utc_now()));
  const RunEnd end = run_locally(plan, forecast, run, observer, stop_request);
  const std::optional<Usd> cost = keep_and_draw(plan, forecast, run.directory, here.run);
  if (end.end.verdict != Verdict::finished)
    display.line(
        how_to_go_on(plan, run.directory, end.checkpoint, run.foreign.has_value(), arguments));
  if (options.format == OutputFormat::json)
    print(run_json(end, forecast, cost));
  else
    print(run_summary(end, forecast, cost) +
          (here.run ? own_evidence_sentence(here.evidence) : ""));
  return end.end.exit_code;
}

}  // namespace

std::vector<OptionText> run_options_text() { return describe_options(kRunNames); }

int run_run(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kRunNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (options.files.size() > 1) throw UsageError("run takes one scenario file");
  const std::string on = options.answer("on");
  if (!on.empty() && on != "local" && on != "kubernetes")
    throw UsageError(fmt::format("--on {} is none: local or kubernetes", on));
  if (on == "kubernetes") return run_in_cluster(self, kRunNames, options);
  refuse_cluster_options(options);
  if (options.answers.contains("accept-changes") && !options.answers.contains("resume"))
    throw UsageError("--accept-changes goes with --resume");
  if (options.files.empty()) throw UsageError(fmt::format("say what to run: {}", self.usage));
  const auto catalog = checked(load_catalogs(options));
  return run_plan(options, arguments, catalog);
}

}  // namespace reckon::cli
