#include "cli/run/run_parts.h"
#include "cli/errors.h"
#include "cli/exit_code.h"
#include "cli/options/usage_error.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "cli/history/history_store.h"
#include "cli/load/load.h"
#include "cli/load/measurements.h"
#include "cli/output.h"
#include "executor/http/bearer_token.h"
#include "executor/http/listen_address.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/records/measurement_log.h"
#include "executor/train/stop_signal.h"
#include "executor/train/trainable.h"
#include "report/json.h"
#include "report/run/status.h"
#include "sim/base/text/printable.h"
#include "sim/measurement/measured_run.h"
#include "sim/measurement/run/bill.h"
#include "sim/measurement/run/pauses.h"
#include "sim/measurement/run/timeline.h"
#include "sim/scenario/resolve/pricing.h"
#include "sim/step/step.h"

namespace reckon::cli {
namespace {

/// Of the step model alone.
Seconds modelled_step(const Plan& plan, const Forecast& forecast) {
  const PlannedPool* workers = plan.pool_with(Role::worker);
  const double factor = workers != nullptr ? workers->efficiency.step_spread.value : 0;
  return factor > 0 ? forecast.step.step / factor : forecast.step.step;
}

/// The first attempt since which all ran the plan that the last ran.
std::int64_t first_of_last_plan(const Measurements& measured) {
  std::int64_t first = 0;
  for (const RunRecord& run : measured.runs)
    if (run.plan_digest != measured.runs.back().plan_digest)
      first = std::max(first, run.attempt + 1);
  return first;
}

/// What the run took, beside what was forecast of it. Steps are those under its last plan; of a
/// run that had several it is no evidence how long one takes from its start on.
void keep_run(const Plan& plan, const Forecast& forecast, Measurements measured,
              const RunDirectory& directory, const std::optional<OwnRun>& here) {
  if (measured.ends.empty() || !measured.ends.back().finished) return;
  const std::int64_t first = first_of_last_plan(measured);
  std::erase_if(measured.steps, [&](const StepRecord& s) { return s.attempt < first; });
  HistoryRecord record = record_of(plan, forecast, utc_now());
  record.kind = HistoryRecord::Kind::run;
  const double took = time_running(measured).count();
  record.time_seconds = {took, took, took, took};
  record.cost_usd.reset();
  std::vector<double> steps;
  for (const StepRecord& s : steady_steps(measured)) steps.push_back(s.seconds.count());
  record.step_seconds = steps.empty() ? 0 : quantile(std::move(steps), 0.5);
  record.directory = directory.root.string();
  if (here && first == 0) record.own = measured_as(*here, modelled_step(plan, forecast), measured);
  keep(record);
}

}  // namespace

Display::Display() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void Display::status(const RunStatus& status, const std::string& table) {
  const auto now = std::chrono::steady_clock::now();
  constexpr std::chrono::seconds kBetweenLines{30};
  if (!terminal_ && shown_ && now - *shown_ < kBetweenLines) return;
  shown_ = now;
  const std::string line = run_line(status, std::chrono::system_clock::now(), width());
  if (!terminal_) return print_error(line + '\n');
  clear();
  print_error(table + line);
  drawn_ = 1 + int(std::count(table.begin(), table.end(), '\n'));
}

void Display::line(std::string_view text) {
  clear();
  print_error(fmt::format("{}\n", text));
}

void Display::clear() {
  if (drawn_ > 1) print_control(fmt::format("\033[{}A", drawn_ - 1));
  if (drawn_ > 0) print_control("\r\033[J");
  drawn_ = 0;
}

int Display::width() const {
  winsize size{};
  const bool known = terminal_ && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 20 ? size.ws_col - 1 : 160;
}

Expected<LoadedPlan> load_run(const RunOptions& options, const LoadedCatalog& catalog) {
  auto loaded = load_plan_to_run(options.files.front(), options, options, catalog);
  if (loaded && options.seed) loaded->plan.seed = *options.seed;
  return loaded;
}

std::optional<Seconds> deadline_of(const RunOptions& options, const Plan& plan) {
  if (options.deadline) return options.deadline;
  std::optional<Seconds> tightest;
  for (const Expectation& e : plan.expect) {
    const bool bound = e.comparison == Comparison::le || e.comparison == Comparison::lt;
    if (e.metric == Metric::time && bound)
      tightest = std::min(tightest.value_or(Seconds::max()), Seconds{e.value});
  }
  return tightest;
}

std::optional<Usd> budget_of(const RunOptions& options, const LoadedPlan& loaded) {
  if (!options.budget) return std::nullopt;
  Diagnostics problems;
  const auto refuse = [&](const std::string& at, std::string what, std::string hint) {
    problems.push_back(
        {Severity::error, loaded.file.places.find(at), std::move(what), std::move(hint)});
  };
  const auto usd = planning::to_usd_rate(*options.budget, loaded.file.scenario.prices);
  if (!usd) refuse("prices", "--budget: " + usd.error(), "prices: {currency: EUR, usd_rate: 0.92}");
  for (const PlannedPool& pool : loaded.plan.pools)
    if (!pool.price.known)
      refuse("cluster.pools." + pool.name,
             fmt::format("--budget needs prices, and that of pool '{}' is unknown", pool.name),
             "price: 2 USD/h in a machine of your own, or prices: {rates: {MACHINE: 4.10 USD/h}}");
  if (!problems.empty()) throw WrongInput(std::move(problems));
  return Usd{usd->v};
}

RetryRules retry_of(const RunOptions& options, RetryRules rules) {
  constexpr Seconds kShortestWait{1}, kLongestWait{60};
  rules.base = std::max(rules.base, kShortestWait);
  rules.cap = std::max(rules.cap, kLongestWait);
  if (options.retries) rules.backoff_limit = *options.retries;
  if (const auto& delay = options.retry_delay) {
    rules.base = *delay;
    rules.cap = std::max(rules.cap, *delay);
  }
  return rules;
}

Diagnostics not_trained_by_worker(const RunArtifact& artifact, const std::string& file) {
  if (artifact.container) return {};
  Diagnostics all = cannot_train(artifact.plan);
  for (Diagnostic& one : all) one.at.file = file;
  return all;
}

Diagnostics not_trained_here(const RunArtifact& artifact, const std::string& file) {
  Diagnostics all = not_trained_by_worker(artifact, file);
  if (artifact.container) return all;
  const PlannedWorkload& job = artifact.plan.only_job();
  const MemoryEstimate of_rank = estimate_memory(artifact.plan, job);
  const Bytes state = of_rank.parameters + of_rank.gradients + of_rank.optimizer;
  const int ranks = computing_ranks(job.strategy);
  const Bytes here{double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE))};
  if (double(ranks) * state > here)
    all.push_back({.at = {.file = file},
                   .what = fmt::format(
                       "the plan's {} rank{} would be processes of this machine, which has {} of "
                       "memory: weights, gradients and the optimizer's state alone are {} each",
                       ranks, ranks == 1 ? "" : "s", format_bytes(here), format_bytes(state)),
                   .hint = "reckon run --on kubernetes starts them on the plan's nodes; a smaller "
                           "network of the same layout can be tried here"});
  return all;
}

Diagnostics not_trained_in_pods(const RunArtifact& artifact, const std::string& file,
                                const std::string& node_directory, WatchedPods watched) {
  if (artifact.container) return {};
  Diagnostics all = not_trained_by_worker(artifact, file);
  for (Diagnostic& idle : leaves_accelerators_idle(artifact.plan)) all.push_back(std::move(idle));
  for (Diagnostic& other :
       restarts_otherwise_in_pods(artifact.plan, !node_directory.empty(), watched))
    all.push_back(std::move(other));
  for (Diagnostic& one : all) one.at.file = file;
  return all;
}

ProgressReader progress_of(const ContainerSpec& container) {
  std::vector<MetricsMistake> mistakes;  // found when the plan was made
  auto reader = ProgressReader::from(container_metrics(container, mistakes));
  if (!reader) throw UsageError("workload.container.metrics.log: " + reader.error());
  return std::move(*reader);
}

RunDirectory directory_of(const RunOptions& options, const Plan& plan) {
  namespace fs = std::filesystem;
  const std::string& out = options.out;
  return {fs::absolute(out.empty() ? fs::path("runs") / as_file_name(plan.name) : fs::path(out))};
}

Forecast forecast_with_effects(const Sampling& sampling, const Plan& plan) {
  const auto network = make_network({});
  ForecastOptions how = forecast_options(sampling);
  how.assumption_effects = true;
  return make_forecast(plan, *network, how);
}

void keep_save_interval(Plan& plan, const Forecast& forecast) {
  PlannedCheckpoint& checkpoint = plan.only_job().checkpoint;
  if (checkpoint.mode == CheckpointSpec::Mode::optimal)
    checkpoint.interval = forecast.checkpoint_interval;
}

std::unique_ptr<MetricsServer> metrics_server(const RunOptions& options, Display& display) {
  const std::string& token = options.token_file;
  if (!options.metrics && !token.empty())
    throw UsageError("--token-file is the token of --metrics, which is not given");
  if (!options.metrics) return nullptr;
  auto server = std::make_unique<MetricsServer>(
      *options.metrics, token.empty() ? std::string() : read_token_file(token));
  display.line(
      fmt::format("metrics at http://{}/metrics", text(reachable_here(server->address()))));
  return server;
}

WholeRun run_without_records(const RunEnd& end) {
  return {.time = end.status.elapsed, .starts = end.end.attempts};
}

WholeRun keep_and_draw(const Plan& plan, const Forecast& forecast, const RunDirectory& directory,
                       const RunEnd& end, InHistory in_history, const std::optional<OwnRun>& here) {
  const auto measured = load_measurements(directory.measurements());
  if (!measured) {
    report(measured.error());
    return run_without_records(end);
  }
  if (in_history == InHistory::yes) keep_run(plan, forecast, *measured, directory, here);
  LifeResult life;
  life.timeline = timeline_of(*measured);
  write_file(directory.trace(), trace_json(plan, life));
  WholeRun whole = run_without_records(end);
  if (measured->ends.empty()) return whole;
  whole.time = time_running(*measured);
  whole.paused = time_paused(*measured);
  whole.starts = next_start(*measured).attempt;
  if (const auto& spent = measured->ends.back().spent)
    whole.cost = Usd{*spent};
  else if (forecast.rates)
    whole.cost = to_usd(bill_of(*forecast.rates, without_pauses(*measured)).total);
  return whole;
}

}  // namespace reckon::cli
