#include <fmt/format.h>

#include <algorithm>

#include "executor/kubernetes/plan_state.h"
#include "executor/kubernetes/watched_run.h"
#include "sim/step/step.h"

// A run of several parts: their plans, and what they cost together.
namespace reckon::kubernetes {

void WatchedRun::count_money(const Plan& plan, const Forecast& forecast) {
  if (!forecast.rates) return;
  // From the word to stop until the last pod is gone and its end is seen: kubectl, the node's agent
  // and the watch. Assumed, not measured.
  constexpr Seconds kPodsEnd{15};
  EarlierPart before;
  before.clock = clock_;
  before.ends = options_.state.ends;
  for (const RunPart& part : options_.state.parts) {
    before.runs.emplace_back();
    before.runs.back().attempt = part.attempt;
    before.runs.back().at = part.at;
  }
  money_.emplace(*forecast.rates, before, options_.budget,
                 checkpoint_save_time(plan, plan.only_job()), kPodsEnd);
  for (const CheckpointRecord& saved : files_.before().checkpoints)
    if (saved.action == CheckpointAction::save && saved.attempt >= options_.state.plan_from)
      money_->saved(saved.seconds);
  tracker_.count_money(money_->spending(), money_->budget());
}

void WatchedRun::write_part() {
  patient([&] {
    write_plan_state(kubectl_, options_.state);
    return 0;
  });
}

void WatchedRun::take_up_parts() {
  for (const DecisionRecord& decision : options_.state.decisions) keep(decision);
  for (const EndRecord& end : options_.state.ends) keep(end);
}

bool WatchedRun::starts_too_dear() const {
  if (!money_ || options_.first_is_there) return false;
  return money_->passes(clock_.now() + starts_, tracker_.longest_step());
}

RunEnd WatchedRun::not_started() {
  RunEnd end;
  end.ran = false;
  end.budget_spent = true;
  end.end = {Verdict::stopped, kExitBudgetSpent, money_->reason_not_to_start(clock_.now()), 0};
  end.status = tracker_.at(clock_.now());
  end.checkpoint = checkpoint_;
  if (options_.create) return end;
  patient([&] {
    set_phase(kubectl_, options_.state.run, RunPhase::stopped, end.end.reason, kExitBudgetSpent);
    return 0;
  });
  return end;
}

StopRequest WatchedRun::request() {
  const StopRequest asked = stop_();
  return money_ ? money_->request(asked, clock_.now(), tracker_.longest_step()) : asked;
}

void WatchedRun::explain_stop(RunEnd& end) {
  if (end.end.verdict != Verdict::stopped) return;
  if (money_ && money_->is_out()) {
    end.budget_spent = true;
    end.end.exit_code = kExitBudgetSpent;
    end.end.reason = money_->reason(clock_.now());
  } else if (options_.goes_on) {
    if (std::string why = options_.goes_on(); !why.empty()) end.end.reason = std::move(why);
  }
}

void WatchedRun::take_earlier(const MeasurementRecord& record) {
  if (!keep(record)) return;
  if (const auto* step = std::get_if<StepRecord>(&record); step != nullptr && step->rank == 0)
    tracker_.go_on_from(step->step + 1);
  const auto* saved = std::get_if<CheckpointRecord>(&record);
  if (saved != nullptr && saved->action == CheckpointAction::save)
    checkpoint_ = std::max(checkpoint_.value_or(0), saved->step);
}

std::string WatchedRun::name_of(int rank) const {
  return std::size_t(rank) < names_.size() ? names_[std::size_t(rank)]
                                           : fmt::format("rank {}", rank);
}

void WatchedRun::note_end(const EndRecord& record, const SupervisedEnd& end) {
  const bool stopped = end.verdict == Verdict::stopped;
  const bool goes_on = stopped && end.exit_code != kExitBudgetSpent && options_.goes_on &&
                       !options_.goes_on().empty();
  std::vector<EndRecord> ends = options_.state.ends;
  ends.push_back(record);
  patient([&] {
    write_ends(kubectl_, options_.state.run, ends);
    return 0;
  });
  if (goes_on) return;
  const RunPhase phase = end.verdict == Verdict::finished ? RunPhase::finished
                         : stopped                        ? RunPhase::stopped
                                                          : RunPhase::failed;
  patient([&] {
    set_phase(kubectl_, options_.state.run, phase, end.reason, end.exit_code);
    return 0;
  });
}

}  // namespace reckon::kubernetes
