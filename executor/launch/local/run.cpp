#include "executor/launch/local/run.h"

#include <algorithm>
#include <stdexcept>

#include "executor/launch/local/local_run.h"
#include "executor/launch/rank_kinds.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/stop_signal.h"
#include "sim/base/check.h"
#include "sim/scenario/restart.h"
#include "sim/step/step.h"

namespace reckon {

LocalRun::LocalRun(const Plan& plan, const Forecast& forecast, const LocalRunOptions& options,
                   const RunObserver& observer)
    : plan_(plan),
      options_(options),
      observer_(observer),
      files_({.directory = options.directory,
              .earlier = options.resume ? Earlier::needed : Earlier::refused,
              .processes = processes() + spare_processes(plan),
              .steps = job().steps,
              .leaves_weights = !options.foreign,
              .digest = options.digests.run,
              .plan = options.plan,
              .forecast_text = options.forecast_text}),
      tracker_(forecast, job().steps, options.deadline),
      slow_ranks_(kinds_of_ranks(plan, job())),
      steps_(options.patience, job().steps) {
  if (options.foreign)
    foreign_.emplace(plan, options.foreign->progress, files_.before().clock, options.digests);
  else if (processes() > 1)
    job_.secret = secret_.emplace(options.directory.secret()).path();
  if (!options.foreign && job().restart && job().restart->kind != RestartKind::full)
    standing_.emplace(job(), spare_workers(plan));
  job_.worker = options.worker;
  job_.arguments = options.arguments;
  job_.clock = files_.before().clock;
  job_.lock = files_.lock();
  const EarlierPart& before = files_.before();
  tracker_.expect_evaluations(job());
  tracker_.take_up(before.steps, before.checkpoints, before.interruptions, before.of_this_plan);
  if (forecast.rates) {
    money_.emplace(*forecast.rates, before, options.budget, checkpoint_save_time(plan, job()));
    tracker_.count_money(money_->spending(), money_->budget());
  }
  if (!files_.before().damage.empty()) say(files_.before().damage);
  const std::int64_t announced = before.checkpoint.value_or(0), there = newest_saved().value_or(0);
  if (!options.foreign && there < announced)
    say(
        fmt::format("the records announce a checkpoint of step {}, the newest that is there is of "
                    "step {}: the run goes on from that",
                    announced, there));
}

RunEnd LocalRun::run(const std::function<StopRequest()>& stop) {
  if (const auto& finished = files_.before().finished) return as_it_ended(*finished);
  const Seconds starts = plan_.job_start.framework_start.value;
  if (money_ && money_->passes(job_.clock.now() + starts, tracker_.longest_step()))
    return out_of_money({.ran = false});
  const auto asked = [&] { return request(stop); };
  SuperviseOptions how;
  how.retry = options_.retry;
  how.first_attempt = files_.before().attempt;
  how.checkpoint = [this] { return newest_saved(); };
  how.gang = [this](std::int64_t attempt) { return gang(attempt); };
  how.holds_more = [this] {
    return standing_ && standing_->held_steps() > newest_saved().value_or(0);
  };
  how.trains = [this] { return !tracker_.at_start(); };
  if (foreign_)
    how.run = [&](std::int64_t attempt) {
      try {
        return run_foreign(attempt, asked);
      } catch (const std::runtime_error& error) {  // none of its processes is left
        if (attempt == how.first_attempt) throw;
        return failed_start(error);
      }
    };
  SuperviseEvents events;
  events.starting = [this](std::int64_t attempt) { on_start(attempt); };
  events.interrupted = [this](std::int64_t attempt, const GangEnd& end, Seconds delay) {
    on_interruption(attempt, end, delay);
  };
  events.gang.output = [this](int member, std::string_view line) { on_output(member, line); };
  events.gang.progress = [this](int member, const ProgressReport& r) { on_progress(member, r); };
  events.gang.tick = [this] { show(); };
  RunEnd end;
  end.end = supervise(how, events, asked);
  explain_stop(end);
  record_end(end.end);
  end.status = tracker_.at(job_.clock.now());
  end.checkpoint = newest_checkpoint();
  return end;
}

RunEnd LocalRun::as_it_ended(const EndRecord& finished) {
  RunEnd end;
  end.ran = false;
  end.status = tracker_.at(finished.at);
  end.checkpoint = newest_checkpoint();
  return end;
}

StopRequest LocalRun::request(const std::function<StopRequest()>& stop) {
  const StopRequest asked = stop ? stop() : StopRequest::none;
  return money_ ? money_->request(asked, job_.clock.now(), tracker_.longest_step()) : asked;
}

RunEnd LocalRun::out_of_money(RunEnd end) {
  const Seconds now = job_.clock.now();
  end.budget_spent = true;
  end.end = {Verdict::stopped, kExitBudgetSpent,
             end.ran ? money_->reason(now) : money_->reason_not_to_start(now), end.end.attempts};
  end.status = tracker_.at(now);
  end.checkpoint = newest_checkpoint();
  return end;
}

/// Nobody but the user says by himself why.
void LocalRun::explain_stop(RunEnd& end) {
  if (end.end.verdict != Verdict::stopped) return;
  if (money_ && money_->is_out()) end = out_of_money(std::move(end));
  if (end.budget_spent || !options_.stop_reason) return;
  if (std::string why = options_.stop_reason(); !why.empty()) end.end.reason = std::move(why);
}

int LocalRun::processes() const {
  const PlannedStrategy& s = job().strategy;  // a program of one's own places its variables itself
  return options_.foreign ? s.workers + s.server_count() : computing_ranks(s) + server_processes(s);
}

GangOptions LocalRun::gang(std::int64_t attempt) {
  GangOptions g;
  if (standing_) {
    g = standing_->seat(job_, attempt);
  } else {
    g.rendezvous = local_rendezvous();
    g.members = processes_of(job().strategy, job_, attempt, g.rendezvous);
  }
  g.progress_deadline = options_.progress_deadline;
  g.start_deadline = options_.start_deadline;
  g.notice = options_.notice;
  if (!foreign_)  // nobody knows whether a program of the user's saves
    g.own_notice = [this] {
      return time_for_own_stop(tracker_.longest_step(), checkpoint_save_time(plan_, job()));
    };
  // Who stays notices the loss by itself, perhaps only when a third has left the mesh.
  constexpr Seconds kToNotice{20};
  g.grace = standing_ ? std::max(options_.grace, kToNotice) : options_.grace;
  return g;
}

void LocalRun::record_end(const SupervisedEnd& end) {
  if (const auto open = interruption_.give_up()) files_.measurements().append(*open);
  EndRecord r;
  r.attempt = tracker_.attempt();
  r.finished = end.verdict == Verdict::finished;
  r.at = job_.clock.now();
  r.steps_done = tracker_.steps_done();
  r.detail = end.reason;
  if (money_) r.spent = to_usd(money_->spending().at(r.at)).v;
  files_.measurements().append(r);
}

void LocalRun::show() {
  if (!observer_.status) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  observer_.status(tracker_.at(job_.clock.now()));
}

void LocalRun::say(const std::string& text) const {
  if (observer_.message) observer_.message(text);
}

RunEnd run_locally(const Plan& plan, const Forecast& forecast, const LocalRunOptions& options,
                   const RunObserver& observer, const std::function<StopRequest()>& stop) {
  RECKON_CHECK(forecast.feasible && plan.jobs.size() == 1);
  return LocalRun(plan, forecast, options, observer).run(stop);
}

}  // namespace reckon
