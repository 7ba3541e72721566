#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/launch/supervise.h"
#include "sim/forecast/forecast.h"
#include "sim/measurement/live_forecast.h"
#include "sim/measurement/measurements.h"
#include "sim/measurement/run/spending.h"

// A run as whoever watches it sees it, wherever its processes are.
namespace reckon {

/// Where the run is, for who watches.
struct RunStatus {
  std::string phase;  // "starting", "computing", ..., "waiting"
  std::int64_t attempt = 0;
  std::int64_t steps_done = 0, steps = 0;
  std::optional<double> loss;             // of the last step that told one, as the program says it
  SamplesPerSecond samples_per_second{};  // of the last second
  Seconds step{}, step_forecast{};        // median of the last steps; 0: none yet
  std::int64_t interruptions = 0;
  Seconds elapsed{};  // since the first start
  LiveEstimate estimate;
  std::optional<Seconds> deadline;
  std::optional<Usd> spent, budget;  // nullopt: a price is unknown; none was given
};

struct RunObserver {
  std::function<void(const RunStatus&)> status;  // ten times a second
  std::function<void(std::string_view process, std::string_view line)> output;
  std::function<void(const std::string&)> message;  // of what happens to the job, one line
};

struct RunEnd {
  SupervisedEnd end;
  RunStatus status;                        // the last
  std::optional<std::int64_t> checkpoint;  // newest complete one: where a resumed run goes on
  bool ran = true;            // false: the run had finished before, nothing was started
  bool budget_spent = false;  // it was stopped, or not started, because more would pass the budget
};

/// Steps of rank 0 and interruptions become a RunStatus.
class RunTracker {
 public:
  /// `forecast` must be feasible.
  RunTracker(const Forecast& forecast, std::int64_t steps, std::optional<Seconds> deadline);

  /// What an earlier part of the run has measured. Attempts before `of_this_plan` ran another plan:
  /// of them only counts how far they came.
  void take_up(const std::vector<StepRecord>& steps, const std::vector<CheckpointRecord>& saves,
               std::int64_t interruptions, std::int64_t of_this_plan = 0);
  /// Of the run's job, which must outlive it: when evaluations come.
  void expect_evaluations(const PlannedWorkload& job);
  /// The run's money, and its limit; nullopt: none.
  void count_money(RunSpending spending, std::optional<Usd> budget);
  void begin_attempt(std::int64_t attempt);
  void set_phase(std::string_view phase) { status_.phase = phase; }
  /// It goes on from a checkpoint of so many steps.
  void go_on_from(std::int64_t steps_done) { status_.steps_done = steps_done; }
  void step_done(std::int64_t step, Seconds seconds, std::int64_t samples,
                 std::optional<double> loss);
  /// A checkpoint behind the last step, for which training stood still so long.
  void saved(Seconds blocked) { live_.add_save(blocked); }
  /// So many steps of rank 0 are to be done again, and of all ranks in the mean; the time that the
  /// latter took.
  Seconds interrupted(std::int64_t of_first, double of_all);  // both in steps

  /// No step of this attempt is done yet.
  bool at_start() const { return first_step_of_start_; }
  std::int64_t attempt() const { return status_.attempt; }
  std::int64_t steps_done() const { return status_.steps_done; }
  /// The longest of the last steps, before any the forecast's.
  Seconds longest_step() const;
  const RunStatus& at(Seconds elapsed);

 private:
  void add_recent(Seconds step, std::int64_t samples);

  RunStatus status_;
  LiveForecast live_;
  std::optional<RunSpending> spending_;
  std::deque<double> recent_;  // seconds of the last steps
  double samples_ = 0;         // of the last step, of all ranks
  bool first_step_of_start_ = true;
};

}  // namespace reckon
