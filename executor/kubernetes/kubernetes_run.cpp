#include "executor/kubernetes/kubernetes_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "executor/kubernetes/interruption_log.h"
#include "executor/kubernetes/known_records.h"
#include "executor/kubernetes/pods/pod_log.h"
#include "executor/kubernetes/pods/pod_metrics.h"
#include "executor/kubernetes/pods/pod_times.h"
#include "executor/launch/foreign_program.h"
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

class KubernetesRun {
 public:
  KubernetesRun(const Plan& plan, const Forecast& forecast, const Kubectl& kubectl,
                const KubernetesRunOptions& options, const KubernetesObserver& observer,
                const std::function<StopRequest()>& stop)
      : kubectl_(kubectl),
        options_(options),
        observer_(observer),
        stop_(stop),
        has_servers_(plan.jobs.front().strategy.parameter_servers > 0),
        secret_made_(options.secret_is_there),
        names_(process_names(plan.jobs.front().strategy)),
        ranks_(names_.size()),
        known_(options.files.directory.measurements(), options.foreign.has_value()),
        files_(with_processes(options.files, names_.size())),
        clock_(clock_of(options)),
        times_(plan, clock_),
        tracker_(forecast, plan.jobs.front().steps, options.deadline),
        interruptions_(kubectl, options.state) {
    if (options.foreign) foreign_.emplace(plan, *options.foreign, clock_, options.digests);
    tracker_.take_up(files_.before().steps, files_.before().checkpoints,
                     files_.before().interruptions);
    checkpoint_ = files_.before().checkpoint;
    if (!files_.before().damage.empty()) say(files_.before().damage);
    for (std::size_t k = 0; k < names_.size(); ++k) ranks_[k].name = names_[k];
  }

  RunEnd run() {
    if (options_.create)
      create_state(kubectl_, options_.state);
    else
      read_earlier_attempts();
    SuperviseOptions how;
    how.retry = options_.retry;
    how.first_attempt = options_.first_attempt;
    how.run = [this](std::int64_t attempt) { return run_attempt(attempt); };
    how.checkpoint = [this] { return checkpoint_; };
    for (const KeptInterruption& kept : interruptions_.counted(options_.first_attempt)) {
      how.earlier.push_back(earlier_end(kept));
      fruitless_.count(kept.fruitless);
    }
    SuperviseEvents events;
    events.starting = [this](std::int64_t attempt) {
      tracker_.begin_attempt(attempt);
      checkpoint_before_ = checkpoint_;
    };
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
    std::string told;
    return patiently(std::forward<F>(f), [&](const KubectlError& error, Seconds delay) {
      if (std::exchange(told, error.what()) != error.what())
        say(fmt::format("{}; it is tried again until then", error.what()));
      const auto until = std::chrono::steady_clock::now() + delay;
      while (std::chrono::steady_clock::now() < until) {
        if (stop_() == StopRequest::at_once) return false;
        show();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      return true;
    });
  }

  // ---- what there was before

  /// From the logs of earlier attempts' pods, as far as the cluster has them still: of pods that
  /// ended by themselves.
  void read_earlier_attempts() {
    const Json list = patient([&] {
      return kubectl_.json({"get", "pods", "--selector", selector_of(options_.state.run)});
    });
    std::map<std::pair<std::int64_t, int>, PodView> pods;  // by attempt, then rank
    for (const Json& item : list.at("items")) {
      PodView pod = pod_view(item);
      const bool earlier = pod.attempt < options_.first_attempt && pod.rank >= 0 &&
                           std::size_t(pod.rank) < names_.size();
      if (earlier && pod.ended()) pods.emplace(std::pair(pod.attempt, pod.rank), std::move(pod));
    }
    std::optional<std::int64_t> attempt;
    for (const auto& [at, pod] : pods) {
      if (attempt != at.first) {
        if (foreign_ && attempt) hear(0, foreign_->end());
        attempt = at.first;
        take_up_interruptions(*attempt);
        tracker_.begin_attempt(*attempt);
        if (foreign_) foreign_->begin(*attempt, Seconds{0});
      }
      for (const MeasurementRecord& record : times_.see(pod)) keep(record);
      if (foreign_ && pod.rank == 0 && pod.started) foreign_->started(since_start(*pod.started));
      read_log(pod);
    }
    if (foreign_ && attempt) hear(0, foreign_->end());
    take_up_interruptions(options_.first_attempt);
  }

  /// Those of attempts before this one that an earlier launcher wrote into the cluster, and perhaps
  /// not into files that are here.
  void take_up_interruptions(std::int64_t before) {
    const std::vector<KeptInterruption>& earlier = options_.state.interruptions;
    for (; taken_up_ < earlier.size(); ++taken_up_) {
      const KeptInterruption& kept = earlier[taken_up_];
      const std::int64_t attempt = kept.record.attempt;
      if (attempt >= before) return;
      if (kept.checkpoint) checkpoint_ = std::max(checkpoint_.value_or(0), *kept.checkpoint);
      if (known_.has_interruption(attempt)) continue;
      tracker_.interrupted(kept.open ? 0 : std::min(kept.record.lost_steps, tracker_.steps_done()),
                           0);
      if (!kept.open) {
        keep(kept.record);
        continue;
      }
      const auto at_once = interruption_.open(kept.record, kept.done, kept.step);
      if (at_once) keep(*at_once);
      // It went on, and that is known.
      if (const auto next = known_.first_step_behind(attempt)) settle(*next);
    }
  }

  void read_log(const PodView& pod) {
    const KubectlResult log = kubectl_.attempt({"logs", pod.name, "--timestamps"}, {}, Seconds{60});
    if (!log.good()) return;  // it is gone with its node
    std::optional<Time> at;   // of a line; bars draw over one another in it, "\r" between them
    std::string_view left = log.out;
    while (!left.empty()) {
      const std::size_t end = std::min(left.find_first_of("\r\n"), left.size());
      const std::string_view line = left.substr(0, end);
      left.remove_prefix(std::min(end + 1, left.size()));
      std::string_view text;
      if (const auto time = parse_time(sortable_time(line, text))) at = time;
      if (foreign_)
        hear(pod.rank, foreign_->line(pod.rank, since_start(at.value_or(clock_.started())), text));
      else if (text.starts_with("{\"record\":"))
        on_record(pod.rank, text);
    }
  }

  // ---- one attempt

  GangEnd run_attempt(std::int64_t attempt) {
    const bool there = options_.first_is_there && attempt == options_.first_attempt;
    if (!there) {
      say(fmt::format("attempt {}: {} pods", attempt, names_.size()));
      make_secret();
      patient([&] {
        return kubectl_.run({"apply", "--filename", "-"}, options_.manifests(attempt),
                            kManyObjects);
      });
    }
    if (foreign_) foreign_->begin(attempt, Seconds{0});
    GangEnd end = watch_cluster_gang(kubectl_, gang(attempt), gang_events(attempt), stop_);
    if (foreign_) end_of_foreign(end);
    if (end.code == 0) return end;
    if (!end.asked) on_break(attempt, end);
    patient([&] {
      end_attempt(kubectl_, options_.state.run, attempt);
      return 0;
    });
    if (!end.asked && stopped_from_elsewhere()) {
      interruptions_.drop(attempt);
      end.asked = true;
      end.code = kExitStoppedOnRequest;
      end.reason = "stopped on request";
    }
    return end;
  }

  void make_secret() {
    if (!options_.secret || std::exchange(secret_made_, true)) return;
    patient([&] {
      renew_secret(kubectl_, options_.state.run, *options_.secret);
      return 0;
    });
  }

  void end_of_foreign(GangEnd& end) {
    metrics_.reset();
    for (const MeasurementRecord& record : foreign_->end()) take(0, record);
    fruitless_.judge(end, foreign_->spoke());
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
    g.foreign = foreign_.has_value();
    g.ends_with_first = g.foreign && has_servers_;
    g.notice = options_.notice;
    g.pending_deadline = options_.pending_deadline;
    g.image_deadline = std::min(g.image_deadline, g.pending_deadline);
    return g;
  }

  ClusterGangEvents gang_events(std::int64_t attempt) {
    ClusterGangEvents events;
    events.output = [this](int rank, Time at, std::string_view line) { on_output(rank, at, line); };
    events.event = [this](const EventView& event) { times_.see(event); };
    events.pod = [this](const PodView& pod) {
      for (const MeasurementRecord& record : times_.see(pod)) keep(record);
      if (foreign_ && pod.rank == 0) on_first_pod(pod);
    };
    events.message = [this](const std::string& text) { say(text); };
    events.breaks = [this, attempt](const GangEnd& end) { on_break(attempt, end); };
    events.pods = [this](const std::vector<PodProgress>& pods) { on_pods(pods); };
    events.tick = [this] {
      if (metrics_) poll_metrics();
      interruptions_.flush();
      show();
    };
    return events;
  }

  // ---- what its pods say

  Seconds since_start(Time at) const {
    return std::max(Seconds{0}, Seconds(at - clock_.started()));
  }

  void on_output(int rank, Time at, std::string_view line) {
    const bool ours = !foreign_ && line.starts_with("{\"record\":");
    if (ours && on_record(rank, line)) return;
    if (foreign_) hear(rank, foreign_->line(rank, since_start(at), line));
    if (const auto trouble = files_.line(rank, line)) say(*trouble);
    if (observer_.run.output) observer_.run.output(names_[std::size_t(rank)], line);
  }

  bool on_record(int rank, std::string_view line) {
    const auto parsed = parse_measurements(names_[std::size_t(rank)], std::string(line) + '\n');
    if (!parsed || !parsed->damaged.empty()) return false;
    for (const RunRecord& r : parsed->runs) take(rank, r);
    for (const ChangeRecord& r : parsed->changes) take(rank, r);
    for (const CheckpointRecord& r : parsed->checkpoints) take(rank, r);
    for (const StepRecord& r : parsed->steps) take(rank, r);
    return true;
  }

  void take(int rank, const MeasurementRecord& record) {
    if (const auto* step = std::get_if<StepRecord>(&record)) {
      RankStatus& status = ranks_[std::size_t(rank)];
      status.steps_done = step->step + 1;
      status.step = step->seconds;
    }
    if (!keep(record)) return;
    if (const auto* run = std::get_if<RunRecord>(&record)) on_start(*run);
    const auto* saved = std::get_if<CheckpointRecord>(&record);
    const bool of_all = foreign_ || rank == 0;
    if (saved != nullptr && saved->action == CheckpointAction::save && of_all) {
      checkpoint_ = saved->step;
      if (!saved->emergency) tracker_.saved(saved->blocked);
    }
    const auto* step = std::get_if<StepRecord>(&record);
    if (step == nullptr || !of_all) return;
    tracker_.set_phase("computing");
    tracker_.step_done(step->step, step->seconds, step->samples, step->loss);
  }

  void on_start(const RunRecord& run) {
    tracker_.go_on_from(run.first_step);
    settle(run.first_step);
    // It was there before: one that an earlier launcher saw, or nobody.
    if (foreign_ || run.first_step <= checkpoint_.value_or(0)) return;
    checkpoint_ = checkpoint_before_ = run.first_step;
  }

  void settle(std::int64_t first_step) {
    const auto settled = interruption_.settle(first_step);
    if (!settled) return;
    keep(*settled);
    interruptions_.settle(*settled);
    say(fmt::format("it goes on from step {}; {} steps are done again", first_step,
                    settled->lost_steps));
  }

  // ---- what a program says that is not ours

  void hear(int rank, const ForeignProgram::Records& records) {
    for (const MeasurementRecord& record : records) take(rank, record);
    if (!foreign_->spoke() || foreign_->steps_done() <= tracker_.steps_done()) return;
    tracker_.set_phase("computing");
    if (tracker_.at_start()) tracker_.go_on_from(foreign_->steps_done());
  }

  /// What a program does behind the last reading of its page is lost with it, so near its end, and
  /// when it is told to end, the page is read more often.
  void poll_metrics() {
    constexpr Seconds kSeldom{5}, kOften{1}, kNear{30};
    const RunStatus now = tracker_.at(clock_.now());
    const bool near =
        now.step > Seconds{0} && double(now.steps - now.steps_done) * now.step < kNear;
    const bool ends = first_is_ending_ || near;
    metrics_->poll(ends ? kOften : kSeldom);
    if (metrics_->trouble() == metrics_trouble_) return;
    metrics_trouble_ = metrics_->trouble();
    if (!metrics_trouble_.empty() && !ends) say("no metrics: " + metrics_trouble_);
  }

  void on_first_pod(const PodView& pod) {
    first_is_ending_ = pod.deleting;
    if (!pod.started) return;
    foreign_->started(since_start(*pod.started));
    const auto& page = foreign_->prometheus();
    if (!page || metrics_) return;
    metrics_ = std::make_unique<PodMetrics>(
        kubectl_, pod.name, page->port, page->path,
        [this](std::string_view text) { hear(0, foreign_->page(0, clock_.now(), text)); });
  }

  /// False: it is known from an earlier watch.
  bool keep(const MeasurementRecord& record) {
    if (known_.contains(record)) return false;
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

  /// As far as it is known while the attempt breaks.
  KeptInterruption interruption(std::int64_t attempt, const GangEnd& end) {
    KeptInterruption kept;
    InterruptionRecord& r = kept.record;
    r.attempt = attempt;
    r.cause = cause_of(end);
    r.rank = end.culprit;
    r.at = clock_.now();
    if (r.cause != Interruption::failure) r.notice = options_.notice;
    r.detail = end.reason;
    kept.open = foreign_ && !checkpoint_;
    kept.done = tracker_.steps_done();
    kept.step = tracker_.at(r.at).step;
    if (!kept.open) r.lost_steps = std::max<std::int64_t>(0, kept.done - checkpoint_.value_or(0));
    r.lost_work = double(r.lost_steps) * kept.step;
    kept.checkpoint = checkpoint_;
    kept.futile = ended_by_environment(end) && !(checkpoint_ > checkpoint_before_);
    kept.fruitless = foreign_ && end.unexplained && !foreign_->spoke();
    return kept;
  }

  /// Its pods are about to be ended: from then on nobody else could tell why.
  void on_break(std::int64_t attempt, const GangEnd& end) {
    if (verdict_on(end) == Verdict::retry) interruptions_.note(interruption(attempt, end));
  }

  void on_interruption(std::int64_t attempt, const GangEnd& end, Seconds delay) {
    KeptInterruption kept = interruption(attempt, end);
    InterruptionRecord& r = kept.record;
    interruptions_.note(kept);
    if (kept.open) return on_open_interruption(std::move(r), delay);
    r.lost_work = tracker_.interrupted(r.lost_steps, double(r.lost_steps));
    keep(r);
    say(fmt::format("{} ({}); {} steps to do again; starting again in {}", end.reason,
                    to_text(r.cause), r.lost_steps, format_duration(delay)));
  }

  /// Where it goes on is its own affair.
  void on_open_interruption(InterruptionRecord r, Seconds delay) {
    say(fmt::format("{} ({}); starting again in {}", r.detail, to_text(r.cause),
                    format_duration(delay)));
    const std::int64_t done = tracker_.steps_done();
    const Seconds step = tracker_.interrupted(0, 1);
    if (const auto at_once = interruption_.open(std::move(r), done, step)) keep(*at_once);
  }

  void record_end(const SupervisedEnd& end) {
    if (const auto open = interruption_.give_up()) {
      keep(*open);
      interruptions_.settle(*open);
    }
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
      set_phase(kubectl_, options_.state.run, phase, end.reason, end.exit_code);
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
  bool has_servers_, secret_made_;
  std::vector<std::string> names_;
  std::vector<RankStatus> ranks_;
  KnownRecords known_;  // by an earlier launcher, here
  RunFiles files_;
  RunClock clock_;
  PodTimes times_;
  RunTracker tracker_;
  std::optional<ForeignProgram> foreign_;  // nullopt: reckon-worker
  OpenInterruption interruption_;
  InterruptionLog interruptions_;
  std::size_t taken_up_ = 0;  // so many of earlier launchers' are dealt with
  FruitlessStarts fruitless_;
  std::unique_ptr<PodMetrics> metrics_;  // of the first rank
  bool first_is_ending_ = false;         // somebody ends its pod
  std::string metrics_trouble_;          // what was said of it
  // The newest that is known: now, and when the attempt began.
  std::optional<std::int64_t> checkpoint_, checkpoint_before_;
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
