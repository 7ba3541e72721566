#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/command.h"
#include "cli/history_store.h"
#include "cli/load.h"
#include "cli/machine_store.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_kubernetes.h"
#include "cli/run_parts.h"
#include "cli/run_resume.h"
#include "executor/launch/local_job.h"
#include "executor/launch/local_run.h"
#include "executor/train/graph_runtime.h"
#include "executor/train/run_request.h"
#include "executor/train/stop_signal.h"
#include "report/json.h"
#include "report/run_metrics.h"
#include "report/run_status.h"
#include "report/table.h"
#include "sim/scenario/plan_here.h"
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

/// What every process is told, so that it makes the same plan: the file and what was changed in it.
std::vector<std::string> worker_arguments(const Options& options, const fs::path& directory) {
  std::vector<std::string> words{fs::absolute(options.files.front()).string()};
  const auto add = [&](const char* name, const std::string& value) {
    words.emplace_back(name);
    words.push_back(value);
  };
  for (const std::string& change : options.overrides) add("--set", change);
  for (const fs::path& layer : options.layers) add("--layer", fs::absolute(layer).string());
  for (const fs::path& catalog : options.catalogs) add("--catalog", fs::absolute(catalog).string());
  if (options.seed) add("--seed", std::to_string(*options.seed));
  if (const auto found = options.answers.find("checkpoint-steps"); found != options.answers.end())
    add("--checkpoint-steps", found->second);
  add("--out", directory.string());
  if (options.answers.contains("accept-changes")) words.emplace_back("--accept-changes");
  return words;
}

LocalRunOptions run_options(const Options& options, const LoadedPlan& loaded,
                            const Forecast& forecast) {
  const Plan& plan = loaded.plan;
  LocalRunOptions run;
  run.directory = directory_of(options, plan);
  if (const ContainerSpec* container = container_of(loaded))
    run.foreign = LocalProgram{*container, progress_of(*container)};
  else
    run.worker = find_worker();
  run.plan_text = read_text(options.files.front());
  run.request_text = to_text(request_of(options, run.plan_text));
  run.forecast_text = forecast_json(forecast);
  run.arguments = worker_arguments(options, run.directory.root);
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

/// What a run on this machine's processors will be evidence of, and what its forecast rests on.
struct Here {
  OwnRun run;
  OwnEvidence evidence;
};

/// Passes that are worth measuring before a run: of what our worker can run, and not for long.
bool worth_measuring(const PlannedWorkload& job, Seconds modelled) {
  constexpr Seconds kLongest{1.5};
  return modelled < kLongest && cannot_run(job.model).empty();
}

/// The plan as it runs on this machine, by what was measured of it: its processors, the passes of
/// the job's network, and earlier runs.
std::optional<Here> forecast_here(Plan& plan, const OperationalDefaults& operations, bool ours) {
  auto machine =
      ours && computes_on_processors(plan) ? MachineStore::open() : std::optional<MachineStore>{};
  run_here(plan, operations, ours, machine ? &machine->rates() : nullptr);
  const PlannedPool* workers = plan.pool_with(Role::worker);
  if (!machine || workers == nullptr || !workers->measured_rates) return std::nullopt;
  const PlannedWorkload& job = plan.jobs.front();
  if (worth_measuring(job, passes_time(*workers, job)))
    set_measured_passes(plan, machine->passes({.model = &job.model,
                                               .batch = job.batch_per_accelerator,
                                               .recompute = job.strategy.recompute,
                                               .threads = workers->measured_rates->threads,
                                               .processes = job.strategy.workers}));
  Here here{.run = own_question(plan, machine->name())};
  here.evidence = set_own_evidence(plan, runs_kept(), here.run);
  return here;
}

int run_plan(const Options& options, std::span<const std::string> arguments,
             const LoadedCatalog& catalog) {
  const std::string& file = options.files.front();
  auto loaded = checked(load_plan(file, options, catalog));
  if (options.seed) loaded.plan.seed = *options.seed;  // as the workers do
  const bool ours = container_of(loaded) == nullptr;
  const std::optional<Here> here = forecast_here(loaded.plan, catalog.operations, ours);
  const Plan& plan = loaded.plan;
  if (const ContainerSpec* container = container_of(loaded);
      container != nullptr && container->command.empty()) {
    print_error(
        "reckon: on this machine the container's image is not started, only its command, and "
        "workload.container has none\n");
    return kInputIsWrong;
  }
  const Forecast forecast = forecast_of(options, plan);
  if (!forecast.feasible) {
    print(forecast_table(forecast));
    return kInputIsWrong;
  }
  const LocalRunOptions run = run_options(options, loaded, forecast);
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
  const std::optional<Usd> cost =
      keep_and_draw(plan, forecast, run.directory, here ? std::optional(here->run) : std::nullopt);
  if (end.end.verdict != Verdict::finished)
    display.line(
        how_to_go_on(plan, run.directory, end.checkpoint, run.foreign.has_value(), arguments));
  if (options.format == OutputFormat::json)
    print(run_json(end, forecast, cost));
  else
    print(run_summary(end, forecast, cost) + (here ? own_evidence_sentence(here->evidence) : ""));
  return end.end.exit_code;
}

}  // namespace

std::string run_options_text() { return describe_options(kRunNames); }

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
