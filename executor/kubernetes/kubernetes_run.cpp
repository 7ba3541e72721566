#include "executor/kubernetes/kubernetes_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "executor/kubernetes/pod_times.h"
#include "executor/train/stop_signal.h"
#include "sim/base/check.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

RunFilesOptions with_processes(RunFilesOptions files, std::size_t processes) {
  files.processes = int(processes);
  return files;
}

RunClock clock_of(const KubernetesRunOptions& options) {
  return RunClock::parse(options.state.started).value_or(RunClock::starting_now());
}

/// The lines of a file that is there.
std::set<std::string> lines_of(const std::filesystem::path& file) {
  std::set<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.insert(line + '\n');
  return lines;
}

class KubernetesRun {
 public:
  KubernetesRun(const Plan& plan, const Forecast& forecast, const Kubectl& kubectl,
                const KubernetesRunOptions& options, const KubernetesObserver& observer,
                const std::function<StopRequest()>& stop)
      : kubectl_(kubectl),
        options_(options),
        observer_(observer),
        stop_(stop),
        names_(process_names(plan.jobs.front().strategy)),
        ranks_(names_.size()),
        known_(lines_of(options.files.directory.measurements())),
        files_(with_processes(options.files, names_.size())),
        clock_(clock_of(options)),
        times_(plan, clock_),
        tracker_(forecast, plan.jobs.front().steps, options.deadline) {
    tracker_.take_up(files_.before().steps, files_.before().interruptions);
    checkpoint_ = files_.before().checkpoint;
    for (std::size_t k = 0; k < names_.size(); ++k) ranks_[k].name = names_[k];
  }

  RunEnd run() {
    if (options_.create) create_state(kubectl_, options_.state);
    SuperviseOptions how;
    how.retry = options_.retry;
    how.first_attempt = options_.first_attempt;
    how.run = [this](std::int64_t attempt) { return run_attempt(attempt); };
    SuperviseEvents events;
    events.starting = [this](std::int64_t attempt) { tracker_.begin_attempt(attempt); };
    events.interrupted = [this](std::int64_t attempt, const GangEnd& end, Seconds delay) {
      on_interruption(attempt, end, delay);
    };
    events.gang.tick = [this] { show(); };
    RunEnd end;
    end.end = supervise(how, events, stop_);
    record_end(end.end);
    end.status = tracker_.at(clock_.now());
    end.checkpoint = checkpoint_;
    return end;
  }

 private:
  /// Tries again for as long as it takes; a request to stop ends the waiting.
  template <class F>
  auto patient(F&& f) -> decltype(f()) {
    return patiently(std::forward<F>(f), [this](const KubectlError& error, Seconds delay) {
      say(fmt::format("{}; again in {}", error.what(), format_duration(delay)));
      const auto until = std::chrono::steady_clock::now() + delay;
      while (std::chrono::steady_clock::now() < until) {
        if (stop_() == StopRequest::at_once) return false;
        show();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      return true;
    });
  }

  // ---- one attempt

  GangEnd run_attempt(std::int64_t attempt) {
    const bool there = options_.first_is_there && attempt == options_.first_attempt;
    if (!there) {
      say(fmt::format("attempt {}: {} pods", attempt, names_.size()));
      patient([&] {
        return kubectl_.run({"apply", "--filename", "-"}, options_.manifests(attempt),
                            Seconds{300});
      });
    }
    GangEnd end = watch_cluster_gang(kubectl_, gang(attempt), gang_events(), stop_);
    if (end.code == 0) return end;
    patient([&] {
      end_attempt(kubectl_, options_.state.run, attempt);
      return 0;
    });
    if (!end.asked && stopped_from_elsewhere()) {
      end.asked = true;
      end.code = kExitStoppedOnRequest;
      end.reason = "stopped on request";
    }
    return end;
  }

  bool stopped_from_elsewhere() {
    const auto state = patient([&] { return read_state(kubectl_, options_.state.run); });
    if (!state) throw KubectlError(KubectlFailure::missing, "the run was deleted by somebody else");
    return state->phase == RunPhase::stopping || state->phase == RunPhase::stopped;
  }

  ClusterGangOptions gang(std::int64_t attempt) const {
    ClusterGangOptions g;
    g.run = options_.state.run;
    g.attempt = attempt;
    g.names = names_;
    g.notice = options_.notice;
    g.pending_deadline = options_.pending_deadline;
    return g;
  }

  ClusterGangEvents gang_events() {
    ClusterGangEvents events;
    events.output = [this](int rank, std::string_view line) { on_output(rank, line); };
    events.event = [this](const EventView& event) { times_.see(event); };
    events.pod = [this](const PodView& pod) {
      for (const MeasurementRecord& record : times_.see(pod)) keep(record);
    };
    events.message = [this](const std::string& text) { say(text); };
    events.pods = [this](const std::vector<PodProgress>& pods) { on_pods(pods); };
    events.tick = [this] { show(); };
    return events;
  }

  // ---- what its pods say

  void on_output(int rank, std::string_view line) {
    if (line.starts_with("{\"record\":") && on_record(rank, line)) return;
    if (const auto trouble = files_.line(rank, line)) say(*trouble);
    if (observer_.run.output) observer_.run.output(names_[std::size_t(rank)], line);
  }

  bool on_record(int rank, std::string_view line) {
    const auto parsed = parse_measurements(names_[std::size_t(rank)], std::string(line) + '\n');
    if (!parsed) return false;
    for (const RunRecord& r : parsed->runs)
      if (keep(r)) tracker_.go_on_from(r.first_step);
    for (const CheckpointRecord& r : parsed->checkpoints)
      if (keep(r) && r.action == CheckpointAction::save && rank == 0) checkpoint_ = r.step;
    for (const StepRecord& r : parsed->steps) {
      RankStatus& status = ranks_[std::size_t(rank)];
      status.steps_done = r.step + 1;
      status.step = r.seconds;
      if (!keep(r) || rank != 0) continue;
      tracker_.set_phase("computing");
      tracker_.step_done(r.step, r.seconds, r.samples, r.loss);
    }
    return true;
  }

  /// False: it is known from an earlier watch.
  bool keep(const MeasurementRecord& record) {
    if (!known_.empty() && known_.contains(to_line(record))) return false;
    files_.measurements().append(record);
    return true;
  }

  void on_pods(const std::vector<PodProgress>& pods) {
    for (std::size_t k = 0; k < pods.size(); ++k) {
      ranks_[k].state = pods[k].state;
      ranks_[k].node = pods[k].node;
    }
    const auto running = [](const PodProgress& p) { return p.state == "runs"; };
    if (!std::ranges::all_of(pods, running) && tracker_.at_start()) {
      const auto first = std::ranges::find_if_not(pods, running);
      tracker_.set_phase(fmt::format("{} of {} pods run, {} {}",
                                     std::ranges::count_if(pods, running), pods.size(),
                                     names_[std::size_t(first - pods.begin())], first->state));
    }
  }

  // ---- what happens to the job

  void on_interruption(std::int64_t attempt, const GangEnd& end, Seconds delay) {
    InterruptionRecord r;
    r.attempt = attempt;
    r.cause = cause_of(end);
    r.rank = end.culprit;
    r.at = clock_.now();
    if (r.cause != Interruption::failure) r.notice = options_.notice;
    r.lost_steps = std::max<std::int64_t>(0, tracker_.steps_done() - checkpoint_.value_or(0));
    r.lost_work = tracker_.interrupted(r.lost_steps, double(r.lost_steps));
    r.detail = end.reason;
    keep(r);
    say(fmt::format("{} ({}); {} steps to do again; starting again in {}", end.reason,
                    to_text(r.cause), r.lost_steps, format_duration(delay)));
  }

  void record_end(const SupervisedEnd& end) {
    EndRecord r;
    r.attempt = tracker_.attempt();
    r.finished = end.verdict == Verdict::finished;
    r.at = clock_.now();
    r.steps_done = tracker_.steps_done();
    r.detail = end.reason;
    keep(r);
    const RunPhase phase = end.verdict == Verdict::finished  ? RunPhase::finished
                           : end.verdict == Verdict::stopped ? RunPhase::stopped
                                                             : RunPhase::failed;
    patient([&] {
      set_phase(kubectl_, options_.state.run, phase, end.reason);
      return 0;
    });
  }

  void show() {
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = now;
    if (observer_.ranks) observer_.ranks(ranks_);
    if (observer_.run.status) observer_.run.status(tracker_.at(clock_.now()));
  }

  void say(const std::string& text) const {
    if (observer_.run.message) observer_.run.message(text);
  }

  const Kubectl& kubectl_;
  const KubernetesRunOptions& options_;
  const KubernetesObserver& observer_;
  const std::function<StopRequest()>& stop_;
  std::vector<std::string> names_;
  std::vector<RankStatus> ranks_;
  std::set<std::string> known_;  // records that an earlier launcher has kept here
  RunFiles files_;
  RunClock clock_;
  PodTimes times_;
  RunTracker tracker_;
  std::optional<std::int64_t> checkpoint_;
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace

std::vector<std::string> process_names(const PlannedStrategy& strategy) {
  std::vector<std::string> names;
  for (int rank = 0; rank < strategy.workers; ++rank) names.push_back(fmt::format("rank {}", rank));
  for (int k = 0; k < strategy.parameter_servers; ++k)
    names.push_back(fmt::format("rank {} (server {})", strategy.workers + k, k));
  return names;
}

RunEnd run_on_kubernetes(const Plan& plan, const Forecast& forecast, const Kubectl& kubectl,
                         const KubernetesRunOptions& options, const KubernetesObserver& observer,
                         const std::function<StopRequest()>& stop) {
  RECKON_CHECK(forecast.feasible && plan.jobs.size() == 1);
  return KubernetesRun(plan, forecast, kubectl, options, observer, stop).run();
}

}  // namespace reckon::kubernetes
