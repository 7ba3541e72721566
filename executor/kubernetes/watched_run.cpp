#include "executor/kubernetes/watched_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "executor/kubernetes/pods/free_room.h"
#include "executor/kubernetes/pods/pod_log.h"
#include "executor/launch/rank_kinds.h"
#include "executor/train/recipe/recipe.h"
#include "sim/scenario/restart.h"
#include "sim/step/step.h"

namespace reckon::kubernetes {
namespace {

RunFilesOptions files_of(const KubernetesRunOptions& options, int processes) {
  RunFilesOptions files = options.files;
  files.processes = processes;
  files.started = options.state.started;
  return files;
}

std::optional<SeatingRules> seating_of(const Plan& plan, const KubernetesRunOptions& options) {
  if (!options.stays) return std::nullopt;
  return seating_rules(plan.only_job(), spare_workers(plan), Seated::workers);
}

RunClock clock_of(const KubernetesRunOptions& options) {
  return RunClock::parse(options.state.started).value_or(RunClock::starting_now());
}

}  // namespace

WatchedRun::WatchedRun(const Plan& plan, const Forecast& forecast, const Kubectl& kubectl,
                       const KubernetesRunOptions& options, const KubernetesObserver& observer,
                       const std::function<StopRequest()>& stop)
    : kubectl_(kubectl),
      options_(options),
      observer_(observer),
      stop_(stop),
      plan_(plan),
      starts_(plan.job_start.framework_start.value),
      has_servers_(plan.only_job().strategy.server_count() > 0),
      secret_made_(options.secret_is_there),
      workers_(plan.only_job().strategy.workers),
      ranks_of_worker_(ranks_of_worker(plan.only_job().strategy)),
      names_(process_names(plan.only_job().strategy)),
      seating_(seating_of(plan, options)),
      ranks_(names_.size() + std::size_t(seating_ ? seating_->spares : 0)),
      known_(options.files.directory.measurements(), options.foreign.has_value()),
      files_(files_of(options, int(names_.size()) + (seating_ ? 1 : 0))),
      clock_(clock_of(options)),
      times_(plan, clock_),
      tracker_(forecast, plan.only_job().steps, options.deadline),
      steps_(options.patience, plan.only_job().steps),
      slow_ranks_(kinds_of_ranks(plan, plan.only_job())),
      cordoned_in_(options.state.cordoned_in),
      interruptions_(kubectl, options.state) {
  if (options.foreign) foreign_.emplace(plan, *options.foreign, clock_, options.digests);
  tracker_.expect_evaluations(plan.only_job());
  tracker_.take_up(files_.before().steps, files_.before().checkpoints,
                   files_.before().interruptions, files_.before().of_this_plan);
  count_money(plan, forecast);
  checkpoint_ = files_.before().checkpoint;
  if (!files_.before().damage.empty()) say(files_.before().damage);
  for (std::size_t k = 0; k < ranks_.size(); ++k)
    ranks_[k].name = k < names_.size() ? names_[k] : "stands by";
}

RunEnd WatchedRun::run() {
  if (starts_too_dear()) return not_started();
  if (options_.begins_part) write_part();
  take_up_parts();
  if (options_.create)
    create_state(kubectl_, options_.state);
  else
    read_earlier_attempts();
  tell_watched_ranks();
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
  events.starting = [this](std::int64_t attempt) { begin_attempt(attempt); };
  events.interrupted = [this](std::int64_t attempt, const GangEnd& end, Seconds delay) {
    on_interruption(attempt, end, delay);
  };
  events.gang.tick = [this] { show(); };
  RunEnd end;
  end.end = supervise(how, events, asked_);
  if (end.end.verdict != Verdict::finished) end_standing();
  explain_stop(end);
  record_end(end.end);
  end.status = tracker_.at(clock_.now());
  end.checkpoint = checkpoint_;
  return end;
}

void WatchedRun::begin_attempt(std::int64_t attempt) {
  tracker_.begin_attempt(attempt);
  steps_.begin();
  slow_ranks_.begin();
  checkpoint_before_ = checkpoint_;
}

void WatchedRun::read_earlier_attempts() {
  const Json list = patient([&] {
    return kubectl_.json({"get", "pods", "--selector", selector_of(options_.state.run)});
  });
  std::map<std::pair<std::int64_t, int>, PodView> pods;  // by attempt, then rank
  for (const Json& item : list.at("items")) {
    PodView pod = pod_view(item);
    const bool has_name =
        std::size_t(pod.rank) < ranks_.size() || pod.attempt < options_.state.plan_from;
    const bool earlier = pod.attempt < options_.first_attempt && pod.rank >= 0 && has_name;
    if (earlier && pod.ended()) pods.emplace(std::pair(pod.attempt, pod.rank), std::move(pod));
  }
  std::optional<std::int64_t> attempt;
  for (const auto& [at, pod] : pods) {
    if (attempt != at.first) {
      if (foreign_ && attempt) hear(0, foreign_->end());
      attempt = at.first;
      take_up_interruptions(*attempt);
      tracker_.begin_attempt(*attempt);
      slow_ranks_.begin();
      if (foreign_) foreign_->begin(*attempt, Seconds{0});
    }
    for (const MeasurementRecord& record : times_.see(pod)) keep(record);
    if (foreign_ && pod.rank == 0 && pod.started) foreign_->started(since_start(*pod.started));
    read_log(pod);
  }
  if (foreign_ && attempt) hear(0, foreign_->end());
  take_up_interruptions(options_.first_attempt);
}

void WatchedRun::take_up_interruptions(std::int64_t before) {
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

void WatchedRun::read_log(const PodView& pod) {
  const KubectlResult log = kubectl_.attempt({"logs", pod.name, "--timestamps"}, {}, Seconds{60});
  if (!log.good()) return;  // it is gone with its node
  std::optional<Time> at;   // of a line; bars draw over one another in it, "\r" between them
  int rank = pod.rank;      // of a line: where pods stay they say so
  std::string_view left = log.out;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find_first_of("\r\n"), left.size());
    const std::string_view line = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    std::string_view text;
    if (const auto time = parse_time(sortable_time(line, text))) at = time;
    if (const auto part = parse_part_line(text)) rank = part->rank;
    if (foreign_)
      hear(pod.rank, foreign_->line(pod.rank, since_start(at.value_or(clock_.started())), text));
    else if (text.starts_with("{\"record\":") && std::size_t(rank) < ranks_.size())
      on_record(rank, text);
  }
}

GangEnd WatchedRun::run_attempt(std::int64_t attempt) {
  if (options_.stays) return run_standing(attempt);
  const bool there = options_.first_is_there && attempt == options_.first_attempt;
  if (!there)
    if (const auto failed = make_pods(attempt)) return *failed;
  if (foreign_) foreign_->begin(attempt, Seconds{0});
  GangEnd end = watch_cluster_gang(kubectl_, gang(attempt), gang_events(attempt), asked_);
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

std::optional<GangEnd> WatchedRun::make_pods(std::int64_t attempt) {
  const bool first = attempt == options_.first_attempt;
  if (!first) phase();  // a run that was deleted meanwhile is not made again
  say(fmt::format("attempt {}: {} pods", attempt, ranks_.size()));
  try {
    make_secret();
    patient([&] {
      return kubectl_.run({"apply", "--filename", "-"}, options_.manifests(attempt), kManyObjects);
    });
    return std::nullopt;
  } catch (const KubectlError& error) {
    if (first) throw;
    // Some of them, or all, may be there.
    const bool ended = patient([&] {
      return end_attempt_and_wait(kubectl_, options_.state.run, attempt,
                                  time_to_end(options_.notice), [this] {
                                    show();
                                    return stop_() != StopRequest::at_once;
                                  });
    });
    if (!ended) throw;
    return failed_start(error);
  }
}

GangEnd WatchedRun::run_standing(std::int64_t attempt) {
  const bool there = options_.first_is_there && attempt == options_.first_attempt;
  if (standing_ && !standing_->can_go_on()) end_standing();
  if (!standing_) {
    if (!there)
      if (const auto failed = make_pods(attempt)) return *failed;
    ClusterGangOptions how = gang(attempt);
    how.attempt = there ? options_.objects : attempt;
    how.stays = true;
    how.seating = *seating_;
    // Nobody else is waited for: who stands by never ends by itself.
    how.ends_with_first = seating_->kind != RestartKind::in_place;
    standing_ = std::make_unique<StandingPods>(kubectl_, std::move(how), gang_events(attempt));
  }
  GangEnd end = standing_->run(attempt, asked_);
  if (end.code == 0) return end;
  if (!end.asked) on_break(attempt, end);
  if (!end.asked && stopped_from_elsewhere()) {
    interruptions_.drop(attempt);
    end.asked = true;
    end.code = kExitStoppedOnRequest;
    end.reason = "stopped on request";
  }
  if (end.asked || verdict_on(end) != Verdict::retry) end_standing();
  return end;
}

void WatchedRun::end_standing() {
  if (!standing_) return;
  patient([&] {
    end_attempt(kubectl_, options_.state.run, standing_->objects());
    return 0;
  });
  standing_.reset();
}

void WatchedRun::make_secret() {
  if (!options_.secret || std::exchange(secret_made_, true)) return;
  patient([&] {
    renew_secret(kubectl_, options_.state.run, *options_.secret);
    return 0;
  });
}

void WatchedRun::end_of_foreign(GangEnd& end) {
  metrics_.reset();
  for (const MeasurementRecord& record : foreign_->end()) take(0, record);
  fruitless_.judge(end, foreign_->spoke());
}

RunPhase WatchedRun::phase() {
  const auto state = patient([&] { return read_state(kubectl_, options_.state.run); });
  if (!state) throw KubectlError(KubectlFailure::missing, "the run was deleted by somebody else");
  return state->phase;
}

bool WatchedRun::stopped_from_elsewhere() {
  const RunPhase now = phase();
  return now == RunPhase::stopping || now == RunPhase::stopped;
}

ClusterGangOptions WatchedRun::gang(std::int64_t attempt) const {
  ClusterGangOptions g;
  g.run = options_.state.run;
  g.attempt = attempt;
  g.names = names_;
  g.foreign = foreign_.has_value();
  g.ends_with_first = g.foreign && has_servers_;
  g.notice = options_.notice;
  if (!foreign_)  // nobody knows whether a program of the user's saves
    g.own_notice = [this] {
      return time_for_own_stop(tracker_.longest_step(),
                               checkpoint_save_time(plan_, plan_.only_job()));
    };
  g.pending_deadline = options_.pending_deadline;
  g.image_deadline = std::min(g.image_deadline, g.pending_deadline);
  return g;
}

ClusterGangEvents WatchedRun::gang_events(std::int64_t attempt) {
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
  events.hangs = [this](Seconds heard) { return hangs(heard); };
  events.tick = [this] {
    if (metrics_) poll_metrics();
    interruptions_.flush();
    show();
  };
  return events;
}

std::string WatchedRun::hangs(Seconds heard) {
  if (!metrics_ || metrics_->reads()) steps_.pass(heard);
  return steps_.hangs() ? steps_.words() : "";
}

void WatchedRun::show() {
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  if (observer_.ranks) observer_.ranks(ranks_);
  if (observer_.run.status) observer_.run.status(tracker_.at(clock_.now()));
}

void WatchedRun::say(const std::string& text) const {
  if (observer_.run.message) observer_.run.message(text);
}

}  // namespace reckon::kubernetes
