#include "cli/run/trial_layouts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "cli/exit_code.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "cli/plan/plan_question.h"
#include "cli/run/bound_here.h"
#include "cli/run/run_parts.h"
#include "executor/launch/local/job.h"
#include "executor/launch/local/run.h"
#include "executor/launch/trial_run.h"
#include "executor/probe/host.h"
#include "executor/probe/scratch_folder.h"
#include "executor/train/records/measurement_log.h"
#include "executor/train/stop_signal.h"
#include "planner/change.h"
#include "planner/question.h"
#include "planner/search/candidates.h"
#include "planner/space/space.h"
#include "report/run/layout_trial.h"
#include "report/text.h"
#include "sim/base/text/shell_word.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

/// Empty, for the runs that the user keeps.
fs::path folder_of(const std::string& kept) {
  const fs::path path = fs::absolute(kept);
  if (fs::exists(path) && !fs::is_empty(path))
    throw UsageError(fmt::format(
        "--out {}: the folder is not empty, and the runs of a trial need an empty one", kept));
  fs::create_directories(path);
  return path;
}

/// A layout as a run of a few steps here.
struct LayoutRun {
  LayoutRow row;
  RunArtifact artifact;
  Forecast forecast;
  const PlannedStrategy& strategy() const { return artifact.plan.only_job().strategy; }
};

/// How the model and its batch are cut.
auto cut_of(const Layout& l) {
  return std::tie(l.data, l.tensor, l.pipeline, l.context, l.expert, l.zero_stage, l.micro_batch,
                  l.sequence_parallel, l.schedule, l.interleave);
}

bool is_same_cut(const planner::Split& a, const planner::Split& b) {
  const auto served = [](const planner::Split& s) {
    return s.kind == StrategyKind::parameter_server;
  };
  return cut_of(a.layout) == cut_of(b.layout) && served(a) == served(b) &&
         a.parameter_servers == b.parameter_servers;
}

bool is_same_job(const PlannedStrategy& a, const PlannedStrategy& b) {
  const auto rest = [](const Layout& l) {
    return std::tie(l.recompute, l.offload_optimizer, l.overlap);
  };
  return cut_of(a.layout) == cut_of(b.layout) && rest(a.layout) == rest(b.layout) &&
         a.servers.has_value() == b.servers.has_value() && a.server_count() == b.server_count();
}

/// In words that tell apart what is_same_job() does.
std::string layout_words(const PlannedStrategy& s) {
  std::string name = planner::strategy_text({.kind = s.kind,
                                             .nodes = s.workers,
                                             .parameter_servers = s.server_count(),
                                             .layout = s.layout});
  if (s.layout.offload_optimizer) name += ", optimizer offloaded";
  if (!s.layout.overlap && traits_of(s.kind).overlaps) name += ", no overlap";
  return name;
}

struct BestLayouts {
  std::vector<std::vector<std::string>> changes;  // of each, words of --set
  std::string options;  // with which other commands read the same scenario
};
/// `plan.vary.layout` adds those that split the model.
constexpr const char* kWhole = "plan.vary.strategy=[single, mirrored, multi_worker_mirrored]";
/// Does the scenario say itself which strategies may be?
bool varies_strategy(const TrialCommandOptions& options) {
  const auto file = load_scenario(options.files.front(), options);
  return file && file->scenario.plan && file->scenario.plan->vary.contains("strategy");
}

/// Those whose steps are the shortest by the step model, on the scenario's own nodes. Each cut is
/// among them once, with the recomputation that is the fastest.
BestLayouts best_layouts(const TrialCommandOptions& options, const LoadedCatalog& catalog) {
  PlanOptions ask;
  ask.files = options.files;
  static_cast<ScenarioChanges&>(ask) = options;
  static_cast<CatalogChoice&>(ask) = options;
  ask.layouts = true;
  ask.plan_block = {"plan.objective=time"};
  if (!varies_strategy(options)) ask.plan_block.emplace_back(kWhole);
  auto base = checked(plan_base(ask, catalog));
  BestLayouts best{{}, base.words.file_options + base.words.catalog_options};
  const auto profile = checked(profile_of(base, catalog));
  base.evidence = profile ? profile.get() : catalog.evidence();
  const auto question = checked(planner::make_question(std::move(base), catalog));
  if (question.may.hardware)
    throw UsageError(
        "--layouts runs layouts of the scenario's own pools, and its plan: block leaves the "
        "machines open: write them into cluster.pools");
  const auto network = make_network({});
  const planner::Space space = planner::make_space(question, catalog, *network,
                                                   {.replications = 1, .threads = options.threads});
  std::vector<const planner::Candidate*> all;
  for (const planner::Candidate& c : space.candidates) all.push_back(&c);
  std::ranges::stable_sort(
      all, {}, [&](const planner::Candidate* c) { return space.split(*c).step_seconds; });
  std::vector<const planner::Split*> taken;
  for (const planner::Candidate* c : all) {
    if (best.changes.size() == std::size_t(*options.layouts)) break;
    const planner::Split& split = space.split(*c);
    const bool known = std::ranges::any_of(
        taken, [&](const planner::Split* other) { return is_same_cut(*other, split); });
    if (known) continue;
    taken.push_back(&split);
    // Nodes, machines and how they are bought stay as they are.
    std::ranges::copy_if(planner::texts(planner::changes_of(question, space, *c)),
                         std::back_inserter(best.changes.emplace_back()),
                         [](const std::string& text) { return text.starts_with("workload."); });
  }
  return best;
}

/// The scenario with the changes, for some steps and without checkpoints, on this machine.
LayoutRun prepared(const TrialCommandOptions& options, const LoadedCatalog& catalog,
                   std::vector<std::string> changes) {
  ScenarioChanges with = options;
  std::ranges::copy(changes, std::back_inserter(with.overrides));
  with.overrides.push_back(fmt::format("workload.train={{steps: {}}}", options.steps));
  with.overrides.emplace_back("workload.checkpoint={interval: none}");
  LayoutRun run;
  run.row.changes = std::move(changes);
  auto loaded = checked(load_plan(options.files.front(), with, catalog));
  require_one_job(loaded, "a trial");
  if (options.seed) loaded.plan.seed = *options.seed;
  run.artifact = bound_to_this_machine(artifact_of(std::move(loaded), options.files.front(), with),
                                       catalog.operations)
                     .artifact;
  run.row.name = layout_words(run.strategy());
  for (const Diagnostic& why : not_trained_here(run.artifact, options.files.front())) {
    run.row.reason = why.what;
    return run;
  }
  ForecastOptions how = forecast_options(options);
  run.forecast = make_forecast(run.artifact.plan, *make_network({}), how);
  run.row.forecast = run.forecast.step.step;
  if (!run.forecast.feasible) run.row.reason = "does not fit in memory";
  return run;
}

std::vector<LayoutRun> layouts_of(const TrialCommandOptions& options, const LoadedCatalog& catalog,
                                  std::vector<std::vector<std::string>> best) {
  std::vector<LayoutRun> runs;
  runs.push_back(prepared(options, catalog, {}));
  for (auto& changes : best) {
    LayoutRun run = prepared(options, catalog, std::move(changes));
    const bool known = std::ranges::any_of(runs, [&](const LayoutRun& other) {
      return is_same_job(other.strategy(), run.strategy());
    });
    if (!known) runs.push_back(std::move(run));
  }
  runs.front().row.name = "the scenario's own: " + runs.front().row.name;
  return runs;
}

/// What is said before anything starts.
std::string announcement(const std::vector<LayoutRun>& runs, const TrialCommandOptions& options) {
  Seconds all{};
  for (const LayoutRun& run : runs)
    if (run.row.reason.empty()) all += Seconds{run.forecast.time_seconds.p50};
  const PlannedPool& pool = *computing_pools(runs.front().artifact.plan).front();
  const std::string where = pool.accelerator
                                ? fmt::format(
                                      "on the plan's {}; without them it may take far longer (each "
                                      "layout until --timeout {})",
                                      pool.accelerator->name, format_duration(options.timeout))
                                : "here";
  std::string text = fmt::format("{} layouts, {} steps each: about {} {}", runs.size(),
                                 options.steps, format_duration(all), where);
  if (options.usd_per_hour)
    text += fmt::format(", {}", format_usd(Usd{*options.usd_per_hour * all.count() / 3600}));
  return text;
}

/// The mean step of all ranks' slowest, or why there is none.
void measure(LayoutRun& run, const fs::path& directory, const TrialCommandOptions& options,
             const std::function<void(std::int64_t)>& on_step) {
  LocalRunOptions how;
  how.directory = {directory};
  how.worker = find_worker();
  how.plan = write_artifact(run.artifact);
  how.digests = digests_of(run.artifact);
  how.arguments = {how.directory.plan().string(), "--out", directory.string()};
  how.retry.backoff_limit = 0;
  const Deadline limit = Deadline::after(options.timeout);
  std::string last;
  RunObserver observer;
  observer.status = [&](const RunStatus& s) { on_step(s.steps_done); };
  observer.output = [&](std::string_view, std::string_view line) { last = line; };
  const RunEnd end = run_locally(run.artifact.plan, run.forecast, how, observer, [&] {
    return limit.passed() || stop_requests() > 0 ? StopRequest::graceful : StopRequest::none;
  });
  if (end.end.verdict != Verdict::finished) {
    run.row.reason = limit.passed()
                         ? fmt::format("not done after {}", format_duration(options.timeout))
                     : !last.empty() ? last
                                     : end.end.reason;
    return;
  }
  const auto log = read_measurement_log(how.directory.measurements());
  if (!log) throw WrongInput(log.error());
  std::map<std::int64_t, double> slowest;
  for (const StepRecord& s : log->steps)
    slowest[s.step] = std::max(slowest[s.step], s.seconds.count());
  std::vector<double> seconds;
  for (const auto& [step, took] : slowest) seconds.push_back(took);
  run.row.measured = fit_trial(seconds);
  if (!run.row.measured)
    run.row.reason = fmt::format("{} steps are too few after the warm-up: --steps", options.steps);
}

}  // namespace

int try_layouts(const TrialCommandOptions& options, const LoadedCatalog& catalog) {
  std::optional<ScratchFolder> scratch;
  if (options.out.empty()) scratch.emplace(fs::temp_directory_path());
  const fs::path folder = scratch ? scratch->path() : folder_of(options.out);
  BestLayouts best = best_layouts(options, catalog);
  std::vector<LayoutRun> runs = layouts_of(options, catalog, std::move(best.changes));
  print_error(announcement(runs, options) + '\n');
  watch_stop_signals();
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    if (stop_requests() > 0) break;
    if (!runs[k].row.reason.empty()) continue;
    measure(runs[k], folder / fmt::format("layout-{}", k + 1), options, [&](std::int64_t step) {
      if (terminal)
        print_control(fmt::format("\rlayout {} of {}: step {}/{}\033[K", k + 1, runs.size(), step,
                                  options.steps));
    });
  }
  if (terminal) print_control("\r\033[K");
  if (stop_requests() > 0) throw TrialError("stopped");
  const MachineRecord machine = describe_machine();
  LayoutTrial trial{.scenario = runs.front().artifact.plan.name,
                    .machine = fmt::format("{} ({} cores)", machine.processor, machine.cores),
                    .steps = options.steps,
                    .rows = {},
                    .command = "reckon run " + shell_file(options.files.front()) + best.options};
  for (LayoutRun& run : runs) trial.rows.push_back(std::move(run.row));
  sort_by_measured(trial);
  print(options.format == OutputFormat::json ? layout_trial_json(trial)
                                             : layout_trial_table(trial));
  return trial.fastest() != nullptr ? kDone : kAnswerIsNo;
}

}  // namespace reckon::cli
