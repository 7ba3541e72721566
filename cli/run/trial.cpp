#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "cli/command.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/run/trial_layouts.h"
#include "cli/run/trial_options.h"
#include "cli/sweep.h"
#include "executor/launch/local/job.h"
#include "executor/launch/trial_run.h"
#include "executor/probe/host.h"
#include "executor/train/stop_signal.h"
#include "report/run/trial.h"
#include "sim/base/unit_text.h"
#include "sim/measurement/measurements.h"
#include "sim/scenario/resolve/one_worker.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

/// What is measured, and how.
struct TrialRequest {
  TrialOptions run;
  std::string program;
  std::int64_t batch = 1;
  std::optional<double> usd_per_hour;  // of this machine
  bool like_pool = false;              // this machine is like the worker pool's
};

/// reckon-worker as one worker of the plan.
ProcessSpec our_worker(const TrialCommandOptions& options, std::int64_t steps) {
  ProcessSpec p;
  p.name = "the worker";
  p.command = {find_worker().string(), fs::absolute(options.files.front()).string(), "--alone",
               "--steps", std::to_string(steps)};
  const auto add = [&](const char* name, const std::string& value) {
    p.command.emplace_back(name);
    p.command.push_back(value);
  };
  for (const std::string& change : options.overrides) add("--set", change);
  for (const fs::path& layer : options.layers) add("--layer", fs::absolute(layer).string());
  for (const fs::path& catalog : options.catalogs) add("--catalog", fs::absolute(catalog).string());
  if (options.seed) add("--seed", std::to_string(*options.seed));
  if (options.threads > 0) add("--threads", std::to_string(options.threads));
  return p;
}

ProgressPattern pattern_of(const TrialCommandOptions& options, const ContainerSpec* container) {
  std::string expression = options.progress;
  const char* where = "--progress";
  if (expression.empty() && container != nullptr) {
    const auto found = container->metrics.find("log");
    if (found != container->metrics.end()) expression = found->second;
    where = "workload.container.metrics.log";
  }
  if (expression.empty()) return {};
  auto pattern = ProgressPattern::from(expression);
  if (!pattern) throw UsageError(fmt::format("{}: {}", where, pattern.error()));
  return std::move(*pattern);
}

/// The user's own program: --container-command, else what the scenario's container runs.
std::optional<ProcessSpec> own_program(const TrialCommandOptions& options,
                                       const ContainerSpec* container) {
  ProcessSpec p;
  p.name = "the command";
  if (!options.program.empty())
    p.command = {"sh", "-c", options.program};
  else if (container != nullptr && !container->command.empty())
    p.command = container->command;
  else
    return std::nullopt;
  // Python keeps lines that go to a pipe until it has many: their times would say nothing.
  p.environment.emplace_back("PYTHONUNBUFFERED", "1");
  if (container != nullptr)
    p.environment.insert(p.environment.end(), container->env.begin(), container->env.end());
  return p;
}

TrialRequest request_of(const TrialCommandOptions& options, const LoadedPlan& loaded) {
  const PlannedWorkload& job = loaded.plan.only_job();
  const auto& workload = loaded.file.scenario.workload;
  const ContainerSpec* container =
      workload && workload->container ? &*workload->container : nullptr;
  TrialRequest r;
  r.run.steps = options.steps;
  r.run.timeout = options.timeout;
  r.batch = options.batch.value_or(job.strategy.layout.micro_batch);
  r.usd_per_hour = options.usd_per_hour;
  if (auto program = own_program(options, container)) {
    r.run.process = std::move(*program);
    r.run.pattern = pattern_of(options, container);
    r.program = fmt::format("{}", fmt::join(r.run.process.command, " "));
  } else {
    if (options.batch || !options.progress.empty())
      throw UsageError(
          "--batch and --progress speak of a program of your own: "
          "--container-command");
    r.run.process = our_worker(options, r.run.steps);
    r.program = "reckon-worker";
  }
  const PlannedPool* pool = loaded.plan.pool_with(Role::worker);
  const bool on_cpus = pool != nullptr && !pool->accelerator && !pool->slice;
  r.like_pool = options.like_pool || on_cpus;
  return r;
}

TrialRow row_of(std::string name, const Forecast& forecast) {
  TrialRow row;
  row.name = std::move(name);
  row.step = forecast.step.step;
  row.time_seconds = forecast.time_seconds;
  row.cost_usd = forecast.cost_usd;
  if (!forecast.feasible) row.reason = "does not fit in memory";
  return row;
}

/// All of the job's samples, one step after the other, and nothing else.
TrialRow here(const TrialRequest& request, const TrialFit& fit, const PlannedWorkload& job) {
  const double steps = std::ceil(job.total_samples / double(request.batch));
  TrialRow row;
  row.name = "this machine, training alone";
  row.step = fit.mean;
  const double mean = steps * fit.mean.count();
  row.time_seconds = {mean, steps * fit.low.count(), mean, steps * fit.high.count()};
  if (!request.usd_per_hour) return row;
  const double usd = *request.usd_per_hour / 3600;
  const Quantiles& t = row.time_seconds;
  row.cost_usd = Quantiles{usd * t.mean, usd * t.p5, usd * t.p50, usd * t.p95};
  return row;
}

/// The plan, as it is and at the measured speed, and what --sweep names.
Expected<std::vector<TrialRow>> alternatives(const TrialCommandOptions& options,
                                             const TrialRequest& request, const TrialFit& fit,
                                             const Plan& plan, const LoadedCatalog& catalog,
                                             Trial& trial) {
  const auto network = make_network(options);
  const ForecastOptions how = forecast_options(options);
  std::vector<TrialRow> rows{row_of("the plan, as forecast", make_forecast(plan, *network, how))};
  if (const auto alone = one_worker(plan))
    trial.forecast_step = estimate_step(*alone, alone->only_job(), *network).step;
  if (request.like_pool && request.batch != plan.only_job().strategy.layout.micro_batch) {
    trial.warnings.push_back(
        fmt::format("the plan's batch is {}, the trial's {}: the plan is not rescaled",
                    plan.only_job().strategy.layout.micro_batch, request.batch));
  } else if (request.like_pool) {
    if (const auto scaled = with_measured_step(plan, *network, fit))
      rows.push_back(
          row_of("the plan, at the measured step", make_forecast(*scaled, *network, how)));
    else
      trial.warnings.emplace_back(
          "no speed of the plan's machines explains the measured step: the plan is not rescaled");
  }
  if (options.sweeps.empty()) return rows;
  const auto axes = sweep_axes(options);
  const auto sweep = run_sweep(options.files.front(), options, options, axes, catalog, *network);
  if (!sweep) return tl::unexpected(sweep.error());
  for (const SweepPoint& point : sweep->points) {
    const std::string name = fmt::format("{}", fmt::join(point.values, ", "));
    TrialRow row;
    if (point.forecast) row = row_of(name, *point.forecast);
    row.name = name;
    if (!point.forecast) row.reason = point.reason;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The sample as Measurements, for calibration.
std::string lines_of(const Trial& trial, const TrialRequest& request, const Plan& plan,
                     const MachineRecord& machine) {
  const PlannedWorkload& job = plan.only_job();
  RunRecord run;
  run.scenario = plan.name;
  run.started = machine.started;
  run.steps = trial.sample.steps;
  run.model = job.model.name();
  run.precision = request.run.pattern ? std::string(to_text(job.precision)) : "fp32";
  run.optimizer = to_text(job.optimizer);
  run.strategy = "single";
  run.stack = request.run.pattern ? "container" : machine.stack;
  run.machine = machine.host;
  run.batch_per_accelerator = run.global_batch = request.batch;
  run.seed = plan.seed;
  run.catalog_digest = plan.catalog_digest;
  std::string out = to_line(run);
  StepRecord step;
  step.samples = request.batch;
  for (const double seconds : trial.sample.seconds) {
    step.seconds = Seconds{seconds};
    step.at += step.seconds;
    out += to_line(step);
    ++step.step;
  }
  return out;
}

TrialSample sample(const TrialRequest& request) {
  watch_stop_signals();
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const auto on_step = [&](std::int64_t steps) {
    if (terminal) print_control(fmt::format("\rstep {}/{}\033[K", steps, request.run.steps));
  };
  TrialSample measured = run_trial(request.run, on_step, [] {
    return stop_requests() > 0 ? StopRequest::graceful : StopRequest::none;
  });
  if (terminal) print_control("\r\033[K");
  return measured;
}

int try_plan(const TrialCommandOptions& options, const LoadedPlan& loaded,
             const LoadedCatalog& catalog) {
  const Plan& plan = loaded.plan;
  const TrialRequest request = request_of(options, loaded);
  const MachineRecord machine = describe_machine();
  Trial trial;
  trial.scenario = plan.name;
  trial.program = request.program;
  trial.machine = fmt::format("{} ({} cores)", machine.processor, machine.cores);
  trial.batch = request.batch;
  trial.sample = sample(request);
  trial.warnings = trial.sample.warnings;
  const auto fit = fit_trial(trial.sample.seconds);
  if (!fit)
    throw TrialError(
        fmt::format("{} steps have a measured time; {} or more are needed behind "
                    "the warm-up: --steps, or a program that prints more often",
                    trial.sample.seconds.size(), kLeastTrialSteps));
  trial.fit = *fit;
  trial.rows = {here(request, *fit, plan.only_job())};
  auto rows = checked(alternatives(options, request, *fit, plan, catalog, trial));
  std::ranges::move(rows, std::back_inserter(trial.rows));
  if (!options.out.empty()) write_file(options.out, lines_of(trial, request, plan, machine));
  print(options.format == OutputFormat::json ? trial_json(trial) : trial_table(trial));
  return kDone;
}

}  // namespace

std::vector<OptionText> trial_options() { return shown_options<TrialCommandOptions>(); }

int run_trial_command(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<TrialCommandOptions>(self, arguments);
  if (!options) return kDone;
  const auto catalog = checked(load_catalogs(*options));
  try {
    if (options->layouts) return try_layouts(*options, catalog);
    const auto loaded = checked(load_plan(options->files.front(), *options, catalog));
    require_one_job(loaded, "a trial");
    return try_plan(*options, loaded, catalog);
  } catch (const TrialError& e) {
    print_error(fmt::format("reckon: error: {}\n", e.what()));
    return kAnswerIsNo;
  }
}

}  // namespace reckon::cli
