#include <fmt/format.h>

#include <algorithm>

#include "executor/kubernetes/watched_run.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {

Seconds WatchedRun::since_start(Time at) const {
  return std::max(Seconds{0}, Seconds(at - clock_.started()));
}

void WatchedRun::on_output(int rank, Time at, std::string_view line) {
  if (rank < 0) {  // it stands by
    if (const auto trouble = files_.line(int(names_.size()), line)) say(*trouble);
    if (observer_.run.output) observer_.run.output("stands by", line);
    return;
  }
  const bool ours = !foreign_ && line.starts_with("{\"record\":");
  if (ours && on_record(rank, line)) return;
  if (foreign_) hear(rank, foreign_->line(rank, since_start(at), line));
  if (const auto trouble = files_.line(rank, line)) say(*trouble);
  if (observer_.run.output) observer_.run.output(names_[std::size_t(rank)], line);
}

bool WatchedRun::on_record(int rank, std::string_view line) {
  const auto parsed = parse_measurements(name_of(rank), std::string(line) + '\n');
  if (!parsed || !parsed->damaged.empty()) return false;
  for (const RunRecord& r : parsed->runs) take(rank, r);
  for (const ChangeRecord& r : parsed->changes) take(rank, r);
  for (const CheckpointRecord& r : parsed->checkpoints) take(rank, r);
  for (const EvaluationRecord& r : parsed->evaluations) take(rank, r);
  for (const StepRecord& r : parsed->steps) take(rank, r);
  return true;
}

void WatchedRun::take(int rank, const MeasurementRecord& record) {
  if (of_earlier_plan()) return take_earlier(record);
  if (const auto* step = std::get_if<StepRecord>(&record)) {
    RankStatus& status = ranks_[std::size_t(rank)];
    status.steps_done = step->step + 1;
    status.step = step->seconds;
    if (!foreign_) steps_.told(step->step + 1);
  }
  if (!keep(record)) return;
  if (const auto* run = std::get_if<RunRecord>(&record)) on_start(*run);
  const auto* saved = std::get_if<CheckpointRecord>(&record);
  if (saved != nullptr || std::holds_alternative<EvaluationRecord>(record)) steps_.lives();
  const bool of_all = foreign_ || rank == 0;
  if (saved != nullptr && saved->action == CheckpointAction::save && of_all) {
    checkpoint_ = saved->step;
    if (money_) money_->saved(saved->seconds);
    if (!saved->emergency) tracker_.saved(saved->blocked);
  }
  const auto* step = std::get_if<StepRecord>(&record);
  if (step != nullptr && !foreign_) look_for_slow(*step);
  if (step == nullptr || !of_all || (!foreign_ && step->rank != 0)) return;
  tracker_.set_phase("computing");
  tracker_.step_done(step->step, step->seconds, step->samples, step->loss);
}

void WatchedRun::on_start(const RunRecord& run) {
  tracker_.go_on_from(run.first_step);
  settle(run.first_step);
  // It was there before: one that an earlier launcher saw, or nobody.
  if (foreign_ || options_.stays || run.first_step <= checkpoint_.value_or(0)) return;
  checkpoint_ = checkpoint_before_ = run.first_step;
}

void WatchedRun::settle(std::int64_t first_step) {
  const auto settled = interruption_.settle(first_step);
  if (!settled) return;
  keep(*settled);
  interruptions_.settle(*settled);
  say(fmt::format("it goes on from step {}; {} steps are done again", first_step,
                  settled->lost_steps));
}

void WatchedRun::hear(int rank, const ForeignProgram::Records& records) {
  if (foreign_->spoke()) steps_.told(foreign_->steps_done());
  for (const MeasurementRecord& record : records) take(rank, record);
  if (!foreign_->spoke() || foreign_->steps_done() <= tracker_.steps_done()) return;
  tracker_.set_phase("computing");
  if (tracker_.at_start()) tracker_.go_on_from(foreign_->steps_done());
}

void WatchedRun::poll_metrics() {
  constexpr Seconds kSeldom{5}, kOften{1}, kNear{30};
  const RunStatus now = tracker_.at(clock_.now());
  const bool near = now.step > Seconds{0} && double(now.steps - now.steps_done) * now.step < kNear;
  const bool ends = first_is_ending_ || near;
  metrics_->poll(ends ? kOften : kSeldom);
  if (metrics_->trouble() == metrics_trouble_) return;
  metrics_trouble_ = metrics_->trouble();
  if (!metrics_trouble_.empty() && !ends) say("no metrics: " + metrics_trouble_);
}

void WatchedRun::on_first_pod(const PodView& pod) {
  first_is_ending_ = pod.deleting;
  if (!pod.started) return;
  foreign_->started(since_start(*pod.started));
  const auto& page = foreign_->prometheus();
  if (!page || metrics_) return;
  metrics_ = std::make_unique<PodMetrics>(
      kubectl_, pod.name, page->port, page->path,
      [this](std::string_view text) { hear(0, foreign_->page(0, clock_.now(), text)); });
}

bool WatchedRun::keep(const MeasurementRecord& record) {
  if (known_.contains(record)) return false;
  files_.measurements().append(record);
  return true;
}

void WatchedRun::on_pods(const std::vector<PodProgress>& pods) {
  for (std::size_t k = 0; k < pods.size(); ++k) {
    ranks_[k].name = pods[k].name;
    ranks_[k].state = pods[k].state;
    ranks_[k].node = pods[k].node;
  }
  const auto running = [](const PodProgress& p) { return p.state == "runs"; };
  if (!std::ranges::all_of(pods, running) && tracker_.at_start()) {
    const auto first = std::ranges::find_if_not(pods, running);
    tracker_.set_phase(fmt::format("{} of {} pods run, {} {}", std::ranges::count_if(pods, running),
                                   pods.size(), first->name, first->state));
  }
}

int WatchedRun::pod_of_rank(int rank) const { return rank / ranks_of_worker_; }

int WatchedRun::first_rank_of(int pod) const {
  if (foreign_) return pod;
  const int before = std::min(pod, workers_);  // of servers each is one
  return before * ranks_of_worker_ + (pod - before);
}

KeptInterruption WatchedRun::interruption(std::int64_t attempt, const GangEnd& end) {
  KeptInterruption kept;
  InterruptionRecord& r = kept.record;
  r.attempt = attempt;
  r.cause = cause_of(end);
  if (end.culprit) r.rank = first_rank_of(*end.culprit);
  r.at = clock_.now();
  if (r.cause != Interruption::failure) r.notice = options_.notice;
  r.detail = end.reason;
  kept.open = options_.stays || (foreign_ && !checkpoint_);
  kept.done = tracker_.steps_done();
  kept.step = tracker_.at(r.at).step;
  if (!kept.open) r.lost_steps = std::max<std::int64_t>(0, kept.done - checkpoint_.value_or(0));
  r.lost_work = double(r.lost_steps) * kept.step;
  kept.checkpoint = checkpoint_;
  kept.futile = ended_by_environment(end) && !(checkpoint_ > checkpoint_before_);
  kept.fruitless = foreign_ && end.unexplained && !foreign_->spoke();
  return kept;
}

void WatchedRun::on_break(std::int64_t attempt, const GangEnd& end) {
  if (verdict_on(end) == Verdict::retry) interruptions_.note(interruption(attempt, end));
}

void WatchedRun::on_interruption(std::int64_t attempt, const GangEnd& end, Seconds delay) {
  KeptInterruption kept = interruption(attempt, end);
  InterruptionRecord& r = kept.record;
  interruptions_.note(kept);
  if (kept.open) return on_open_interruption(std::move(r), delay);
  r.lost_work = tracker_.interrupted(r.lost_steps, double(r.lost_steps));
  keep(r);
  say(fmt::format("{} ({}): {} steps lost, restarting in {}", end.reason, to_text(r.cause),
                  r.lost_steps, format_duration(delay)));
}

void WatchedRun::on_open_interruption(InterruptionRecord r, Seconds delay) {
  say(fmt::format("{} ({}): restarting in {}", r.detail, to_text(r.cause), format_duration(delay)));
  const std::int64_t done = tracker_.steps_done();
  const Seconds step = tracker_.interrupted(0, 1);
  if (const auto at_once = interruption_.open(std::move(r), done, step)) keep(*at_once);
}

void WatchedRun::record_end(const SupervisedEnd& end) {
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
  if (money_) r.spent = to_usd(money_->spending().at(r.at)).v;
  keep(r);
  note_end(r, end);
}

}  // namespace reckon::kubernetes
