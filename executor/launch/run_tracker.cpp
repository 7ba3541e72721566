#include "executor/launch/run_tracker.h"

#include <algorithm>
#include <utility>

#include "executor/train/records/progress.h"
#include "sim/scenario/plan.h"

namespace reckon {
namespace {

double median_of(std::deque<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

RunTracker::RunTracker(const Forecast& forecast, std::int64_t steps,
                       std::optional<Seconds> deadline)
    : live_(forecast, deadline) {
  status_.steps = steps;
  status_.step_forecast = forecast.step.step;
  status_.deadline = deadline;
  status_.phase = to_text(ProgressPhase::starting);
}

void RunTracker::take_up(const std::vector<StepRecord>& steps,
                         const std::vector<CheckpointRecord>& saves, std::int64_t interruptions,
                         std::int64_t of_this_plan) {
  std::int64_t attempt = -1;
  auto save = saves.begin();
  const auto add_saves = [&](std::optional<std::int64_t> before) {  // of this attempt's, in order
    for (; save != saves.end() && save->attempt <= attempt; ++save) {
      if (before && save->attempt == attempt && save->step > *before) return;
      if (save->action == CheckpointAction::save && !save->emergency &&
          save->attempt >= of_this_plan)
        saved(save->blocked);
    }
  };
  for (const StepRecord& s : steps) {
    if (s.rank != 0) continue;
    status_.steps_done = s.step + 1;
    status_.loss = s.loss;
    if (s.attempt < of_this_plan) continue;
    add_saves(s.step);
    live_.add_step(s.seconds, s.attempt != attempt);
    if (s.attempt != attempt)
      recent_.clear();
    else
      add_recent(s.seconds, s.samples);
    attempt = s.attempt;
  }
  add_saves(std::nullopt);
  for (std::int64_t k = 0; k < interruptions; ++k) live_.add_interruption();
  status_.interruptions += interruptions;
}

/// The one behind a step may be under way until the next step is told of.
void RunTracker::expect_evaluations(const PlannedWorkload& job) {
  const double all = double(evaluations_after(job, job.steps));
  if (all == 0) return;
  live_.set_evaluations([&job, all](std::int64_t steps_done) {
    return 1 - double(evaluations_after(job, steps_done - 1)) / all;
  });
}

void RunTracker::count_money(RunSpending spending, std::optional<Usd> budget) {
  live_.set_spent(to_usd(spending.before()), spending.since());
  if (budget) live_.set_budget(*budget);
  status_.budget = budget;
  spending_ = std::move(spending);
}

Seconds RunTracker::longest_step() const {
  return recent_.empty() ? status_.step_forecast
                         : Seconds{*std::max_element(recent_.begin(), recent_.end())};
}

void RunTracker::begin_attempt(std::int64_t attempt) {
  status_.attempt = attempt;
  status_.phase = to_text(ProgressPhase::starting);
  first_step_of_start_ = true;
  recent_.clear();
}

void RunTracker::step_done(std::int64_t step, Seconds seconds, std::int64_t samples,
                           std::optional<double> loss) {
  status_.steps_done = step + 1;
  status_.loss = loss;
  const bool first = std::exchange(first_step_of_start_, false);
  live_.add_step(seconds, first);
  if (first) return;  // it warms caches and connections up
  add_recent(seconds, samples);
}

void RunTracker::add_recent(Seconds step, std::int64_t samples) {
  constexpr std::size_t kRecent = 50;
  recent_.push_back(step.count());
  if (recent_.size() > kRecent) recent_.pop_front();
  samples_ = double(samples);
}

Seconds RunTracker::interrupted(std::int64_t of_first, double of_all) {
  live_.add_interruption();
  ++status_.interruptions;
  status_.steps_done -= of_first;
  status_.phase = "waiting";
  return of_all * Seconds{median_of(recent_)};
}

const RunStatus& RunTracker::at(Seconds elapsed) {
  status_.elapsed = elapsed;
  status_.step = Seconds{median_of(recent_)};
  status_.samples_per_second = status_.step.count() > 0
                                   ? SamplesPerSecond{samples_ / status_.step.count()}
                                   : SamplesPerSecond{};
  if (spending_) status_.spent = to_usd(spending_->at(elapsed));
  status_.estimate = live_.at(elapsed, status_.steps_done);
  return status_;
}

}  // namespace reckon
