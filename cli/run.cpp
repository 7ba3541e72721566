#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/command.h"
#include "cli/history_store.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "executor/launch/local_job.h"
#include "executor/launch/local_run.h"
#include "executor/launch/metrics_server.h"
#include "executor/train/measurement_log.h"
#include "executor/train/run_request.h"
#include "executor/train/stop_signal.h"
#include "report/json.h"
#include "report/run_metrics.h"
#include "report/run_status.h"
#include "report/table.h"
#include "sim/base/unit_text.h"
#include "sim/calibration/measured_run.h"
#include "sim/calibration/run_timeline.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 18> kNames{"checkpoint-steps",
                                                  "out",
                                                  "resume",
                                                  "deadline",
                                                  "notice",
                                                  "retries",
                                                  "retry-delay",
                                                  "hang",
                                                  "metrics",
                                                  "format",
                                                  "set",
                                                  "layer",
                                                  "seed",
                                                  "replications",
                                                  "catalog",
                                                  "calibration",
                                                  "threads",
                                                  "help"};

/// Shows a run on standard error: a line that is rewritten on a terminal, now and then a line
/// elsewhere.
class Display {
 public:
  Display() : terminal_(::isatty(STDERR_FILENO) == 1) {}
  ~Display() { clear(); }
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  void status(const RunStatus& status) {
    const auto now = std::chrono::steady_clock::now();
    constexpr std::chrono::seconds kBetweenLines{30};
    if (!terminal_ && shown_ && now - *shown_ < kBetweenLines) return;
    shown_ = now;
    const std::string line = run_line(status, std::chrono::system_clock::now(), width());
    print_error(terminal_ ? "\r" + line + "\033[K" : line + '\n');
    dirty_ = terminal_;
  }
  void line(std::string_view text) {
    clear();
    print_error(fmt::format("{}\n", text));
  }

 private:
  void clear() {
    if (dirty_) print_error("\r\033[K");
    dirty_ = false;
  }
  int width() const {
    winsize size{};
    const bool known = terminal_ && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    return known && size.ws_col > 20 ? size.ws_col - 1 : 160;
  }

  bool terminal_, dirty_ = false;
  std::optional<std::chrono::steady_clock::time_point> shown_;
};

std::optional<Seconds> duration_option(const Options& options, const char* name) {
  const auto found = options.answers.find(name);
  if (found == options.answers.end()) return std::nullopt;
  const auto value = parse_duration(found->second);
  if (!value) throw UsageError(fmt::format("--{}: {}", name, value.error()));
  if (value->count() < 0) throw UsageError(fmt::format("--{} is negative", name));
  return *value;
}

/// The deadline that was given, else the tightest upper bound on time that the scenario expects.
std::optional<Seconds> deadline_of(const Options& options, const Plan& plan) {
  if (const auto given = duration_option(options, "deadline")) return given;
  std::optional<Seconds> tightest;
  for (const Expectation& e : plan.expect) {
    const bool bound = e.comparison == Comparison::le || e.comparison == Comparison::lt;
    if (e.metric == Metric::time && bound)
      tightest = std::min(tightest.value_or(Seconds::max()), Seconds{e.value});
  }
  return tightest;
}

RetryRules retry_of(const Options& options, RetryRules rules) {
  if (const auto found = options.answers.find("retries"); found != options.answers.end()) {
    const auto limit = parse_integer(found->second);
    if (!limit || *limit < 0 || *limit > 1'000'000)
      throw UsageError("--retries takes a whole number, such as 6");
    rules.backoff_limit = int(*limit);
  }
  if (const auto delay = duration_option(options, "retry-delay")) {
    rules.base = *delay;
    rules.cap = std::max(rules.cap, *delay);
  }
  return rules;
}

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
  return words;
}

RunRequest request_of(const Options& options) {
  RunRequest request{.file = fs::absolute(options.files.front()), .overrides = options.overrides};
  for (const fs::path& layer : options.layers) request.layers.push_back(fs::absolute(layer));
  return request;
}

LocalRunOptions run_options(const Options& options, const Plan& plan, const Forecast& forecast) {
  LocalRunOptions run;
  const auto out = options.answers.find("out");
  run.directory.root = fs::absolute(out != options.answers.end() ? fs::path(out->second)
                                                                 : fs::path("runs") / plan.name);
  run.worker = find_worker();
  run.plan_text = read_text(options.files.front());
  run.request_text = to_text(request_of(options));
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

/// nullptr: nobody asked for metrics.
std::unique_ptr<MetricsServer> metrics_server(const Options& options, Display& display) {
  const std::string text = options.answer("metrics");
  if (text.empty()) return nullptr;
  const auto port = parse_integer(text);
  if (!port || *port < 0 || *port > std::numeric_limits<std::uint16_t>::max())
    throw UsageError(fmt::format("--metrics takes a port from 0 to 65535, not '{}'", text));
  auto server = std::make_unique<MetricsServer>(std::uint16_t(*port));
  display.line(fmt::format("metrics at http://localhost:{}/metrics", server->port()));
  return server;
}

/// The second request does not wait for checkpoints.
StopRequest stop_request() {
  const int requests = stop_requests();
  return requests == 0   ? StopRequest::none
         : requests == 1 ? StopRequest::graceful
                         : StopRequest::at_once;
}

/// What the run took, beside what was forecast of it.
void keep_run(const Plan& plan, const Forecast& forecast, const Measurements& measured,
              const RunDirectory& directory) {
  if (measured.ends.empty() || !measured.ends.back().finished) return;
  HistoryRecord record = record_of(plan, forecast, utc_now());
  record.kind = HistoryRecord::Kind::run;
  const double took = measured.ends.back().at.count();
  record.time_seconds = {took, took, took, took};
  record.cost_usd.reset();
  std::vector<double> steps;
  for (const StepRecord& s : steady_steps(measured)) steps.push_back(s.seconds.count());
  if (!steps.empty()) record.step_seconds = quantile(std::move(steps), 0.5);
  record.directory = directory.root.string();
  keep(record);
}

void keep_and_draw(const Plan& plan, const Forecast& forecast, const RunDirectory& directory) {
  const auto measured = read_measurement_log(directory.measurements());
  if (!measured) return report(measured.error());
  keep_run(plan, forecast, *measured, directory);
  LifeResult life;
  life.timeline = timeline_of(*measured);
  write_file(directory.trace(), trace_json(plan, life));
}

/// As a word of the shell.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + '\'';
}

/// The words of the user, whose changes of the plan the rest of the run needs as well.
void tell_how_to_resume(std::span<const std::string> arguments, const LocalRunEnd& end,
                        Display& display) {
  if (end.end.verdict == Verdict::finished) return;
  if (!end.checkpoint) return display.line("no checkpoint was made: nothing is there to resume");
  std::string command = "reckon run";
  for (const std::string& word : arguments)
    if (word != "--resume") command += ' ' + quoted(word);
  display.line(
      fmt::format("checkpoint at step {}; go on with: {} --resume", *end.checkpoint, command));
}

int run_plan(const Options& options, std::span<const std::string> arguments,
             const Catalog& catalog) {
  const std::string& file = options.files.front();
  const auto loaded = load_plan(file, options, catalog);
  if (!loaded) {
    report(loaded.error());
    return kInputIsWrong;
  }
  const Plan& plan = loaded->plan;
  const auto network = make_network(options);
  ForecastOptions how;
  how.seed = options.seed;
  how.replications = options.replications;
  how.threads = options.threads;
  how.assumption_effects = false;
  const Forecast forecast = make_forecast(plan, *network, how);
  if (!forecast.feasible) {
    print(forecast_table(forecast));
    return kInputIsWrong;
  }
  const LocalRunOptions run = run_options(options, plan, forecast);

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
  const LocalRunEnd end = run_locally(plan, forecast, run, observer, stop_request);
  keep_and_draw(plan, forecast, run.directory);
  tell_how_to_resume(arguments, end, display);
  print(options.format == OutputFormat::json ? run_json(end, forecast)
                                             : run_summary(end, forecast));
  return end.end.exit_code;
}

}  // namespace

std::string run_options_text() { return describe_options(kNames); }

int run_run(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (options.files.size() > 1) throw UsageError("run takes one scenario file");
  const auto catalog = load_catalogs(options);
  if (!catalog) {
    report(catalog.error());
    return kInputIsWrong;
  }
  return run_plan(options, arguments, *catalog);
}

}  // namespace reckon::cli
