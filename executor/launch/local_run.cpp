#include "executor/launch/local_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>

#include "executor/launch/local_job.h"
#include "executor/train/checkpoint_set.h"
#include "executor/train/measurement_log.h"
#include "sim/base/check.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

fs::path made(const fs::path& directory) {
  create_directories_durably(directory);
  return directory;
}

/// What an earlier part of the run left behind.
struct Before {
  RunClock clock = RunClock::starting_now();
  std::int64_t attempt = 0;  // of the next start
  std::vector<StepRecord> steps;
  std::int64_t interruptions = 0;
};

Before look_back(const LocalRunOptions& options) {
  const fs::path file = options.directory.measurements();
  const std::string root = options.directory.root.string();
  const bool there = fs::exists(file) && fs::file_size(file) > 0;
  if (!there && options.resume) throw FileError(fmt::format("{} holds no run to resume", root));
  if (!there) return {};
  if (!options.resume)
    throw FileError(fmt::format(
        "{} holds a run already; --resume goes on with it, --out names another directory", root));
  const auto read = read_measurement_log(file);
  if (!read) throw FileError(format(read.error()));
  Before before;
  for (const RunRecord& run : read->runs)
    before.attempt = std::max(before.attempt, run.attempt + 1);
  if (!read->runs.empty())
    if (const auto clock = RunClock::parse(read->runs.front().started)) before.clock = *clock;
  before.steps = read->steps;
  before.interruptions = std::int64_t(read->interruptions.size());
  return before;
}

double median_of(std::deque<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One file a process.
class ProcessLogs {
 public:
  ProcessLogs(fs::path directory, int processes) : directory_(made(directory)) {
    for (int k = 0; k < processes; ++k) {
      const fs::path file = file_of(k);
      files_.emplace_back(file, std::ios::app);
      if (!files_.back())
        throw FileError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
    }
  }
  /// A message where this is the first line that cannot be written; then no more are.
  std::optional<std::string> line(int member, std::string_view text) {
    std::ofstream& file = files_[std::size_t(member)];
    if (!file) return std::nullopt;
    file << text << '\n' << std::flush;
    if (file) return std::nullopt;
    return fmt::format("cannot write {}: {}; it ends here", file_of(member).string(),
                       std::strerror(errno));
  }

 private:
  fs::path file_of(int member) const { return directory_ / fmt::format("rank-{}.log", member); }

  fs::path directory_;
  std::vector<std::ofstream> files_;
};

class LocalRun {
 public:
  LocalRun(const Plan& plan, const Forecast& forecast, const LocalRunOptions& options,
           const RunObserver& observer)
      : plan_(plan),
        options_(options),
        observer_(observer),
        lock_(made(options.directory.root)),
        before_(look_back(options)),
        log_(options.directory.measurements()),
        logs_(options.directory.logs(), processes()),
        live_(forecast, options.deadline) {
    // Behind the lock: the directory may be another run's.
    if (!options.plan_text.empty()) write_durably(options.directory.plan(), options.plan_text);
    if (!options.resume && !options.request_text.empty())
      write_durably(options.directory.request(), options.request_text);
    if (!options.resume && !options.forecast_text.empty())
      write_durably(options.directory.forecast(), options.forecast_text);
    job_.worker = options.worker;
    job_.arguments = options.arguments;
    job_.clock = before_.clock;
    job_.lock = lock_.descriptor();
    status_.steps = job().steps;
    status_.step_forecast = forecast.step.step;
    status_.deadline = options.deadline;
    status_.phase = to_text(ProgressPhase::starting);
    take_up(before_);
  }

  LocalRunEnd run(const std::function<StopRequest()>& stop) {
    SuperviseOptions how;
    how.retry = options_.retry;
    how.first_attempt = before_.attempt;
    how.gang = [this](std::int64_t attempt) { return gang(attempt); };
    SuperviseEvents events;
    events.starting = [this](std::int64_t attempt) { on_start(attempt); };
    events.interrupted = [this](std::int64_t attempt, const GangEnd& end, Seconds delay) {
      on_interruption(attempt, end, delay);
    };
    events.gang.output = [this](int member, std::string_view line) { on_output(member, line); };
    events.gang.progress = [this](int member, const ProgressReport& r) { on_progress(member, r); };
    events.gang.tick = [this] { show(); };
    LocalRunEnd end;
    end.end = supervise(how, events, stop);
    record_end(end.end);
    update();
    end.status = status_;
    end.checkpoint = newest_checkpoint();
    return end;
  }

 private:
  const PlannedWorkload& job() const { return plan_.jobs.front(); }
  int processes() const { return job().strategy.workers + job().strategy.parameter_servers; }

  void take_up(const Before& before) {
    std::int64_t attempt = -1;
    for (const StepRecord& s : before.steps) {
      if (s.rank != 0) continue;
      if (s.attempt == attempt) live_.add_step(s.seconds);  // not the first of a start
      attempt = s.attempt;
      status_.steps_done = s.step + 1;
    }
    for (std::int64_t k = 0; k < before.interruptions; ++k) live_.add_interruption();
    status_.interruptions = before.interruptions;
  }

  GangOptions gang(std::int64_t attempt) const {
    GangOptions g;
    g.members = processes_of(job().strategy, job_, attempt, free_port());
    g.progress_deadline = options_.progress_deadline;
    g.start_deadline = options_.start_deadline;
    g.notice = options_.notice;
    g.grace = options_.grace;
    return g;
  }

  void on_start(std::int64_t attempt) {
    status_.attempt = attempt;
    status_.phase = to_text(ProgressPhase::starting);
    first_step_of_start_ = true;
    recent_.clear();
  }

  void on_output(int member, std::string_view line) {
    if (const auto trouble = logs_.line(member, line)) say(*trouble);
    if (observer_.output) observer_.output(fmt::format("rank {}", member), line);
  }

  void on_progress(int member, const ProgressReport& r) {
    if (member != 0) return;
    status_.phase = to_text(r.phase);
    if (r.phase != ProgressPhase::done) return;
    status_.steps_done = r.step + 1;
    status_.loss = r.loss;
    if (std::exchange(first_step_of_start_, false)) return;  // it warms caches and connections up
    live_.add_step(r.seconds);
    constexpr std::size_t kRecent = 50;
    recent_.push_back(r.seconds.count());
    if (recent_.size() > kRecent) recent_.pop_front();
    samples_ = double(r.samples);
  }

  /// Steps that are done and not in a checkpoint are to be done again.
  void on_interruption(std::int64_t attempt, const GangEnd& end, Seconds delay) {
    InterruptionRecord r;
    r.attempt = attempt;
    r.cause = cause_of(end);
    r.rank = end.culprit;
    r.at = job_.clock.now();
    if (r.cause == Interruption::preemption) r.notice = options_.notice;
    r.lost_steps = std::max<std::int64_t>(0, status_.steps_done - newest_checkpoint().value_or(0));
    r.lost_work = double(r.lost_steps) * Seconds{median_of(recent_)};
    r.detail = end.reason;
    log_.append(r);
    live_.add_interruption();
    ++status_.interruptions;
    status_.steps_done -= r.lost_steps;
    status_.phase = "waiting";
    say(fmt::format("{}; {} steps to do again; starting again in {}", end.reason, r.lost_steps,
                    format_duration(delay)));
  }

  std::optional<std::int64_t> newest_checkpoint() const {
    for (const CheckpointSet& set : list_sets(options_.directory.checkpoints()))
      if (set.complete) return set.step;
    return std::nullopt;
  }

  void record_end(const SupervisedEnd& end) {
    EndRecord r;
    r.attempt = status_.attempt;
    r.finished = end.verdict == Verdict::finished;
    r.at = job_.clock.now();
    r.steps_done = status_.steps_done;
    r.detail = end.reason;
    log_.append(r);
  }

  void update() {
    status_.elapsed = job_.clock.now();
    status_.step = Seconds{median_of(recent_)};
    status_.samples_per_second = status_.step.count() > 0
                                     ? SamplesPerSecond{samples_ / status_.step.count()}
                                     : SamplesPerSecond{};
    status_.estimate = live_.at(status_.elapsed, status_.steps_done);
  }

  void show() {
    if (!observer_.status) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = now;
    update();
    observer_.status(status_);
  }

  void say(const std::string& text) const {
    if (observer_.message) observer_.message(text);
  }

  const Plan& plan_;
  const LocalRunOptions& options_;
  const RunObserver& observer_;
  RunLock lock_;
  Before before_;
  MeasurementLog log_;
  ProcessLogs logs_;
  LiveForecast live_;
  LocalJob job_;
  RunStatus status_;
  std::deque<double> recent_;  // seconds of the last steps
  double samples_ = 0;
  bool first_step_of_start_ = true;
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace

LocalRunEnd run_locally(const Plan& plan, const Forecast& forecast, const LocalRunOptions& options,
                        const RunObserver& observer, const std::function<StopRequest()>& stop) {
  RECKON_CHECK(forecast.feasible && plan.jobs.size() == 1);
  return LocalRun(plan, forecast, options, observer).run(stop);
}

}  // namespace reckon
