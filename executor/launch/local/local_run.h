#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/comm/rendezvous/job_secret.h"
#include "executor/launch/foreign_job.h"
#include "executor/launch/foreign_program.h"
#include "executor/launch/local/job.h"
#include "executor/launch/local/run.h"
#include "executor/launch/run_files.h"
#include "executor/launch/run_money.h"
#include "executor/launch/standing_processes.h"
#include "executor/launch/step_watch.h"
#include "sim/measurement/slow_ranks.h"

// The class behind run_locally(): one start of `reckon run`, with all attempts of its processes.
namespace reckon {

class LocalRun {
 public:
  LocalRun(const Plan& plan, const Forecast& forecast, const LocalRunOptions& options,
           const RunObserver& observer);
  RunEnd run(const std::function<StopRequest()>& stop);

 private:
  // run.cpp: its processes, and its end
  RunEnd as_it_ended(const EndRecord& finished);
  StopRequest request(const std::function<StopRequest()>& stop);
  RunEnd out_of_money(RunEnd end);
  void explain_stop(RunEnd& end);
  const PlannedWorkload& job() const { return plan_.only_job(); }
  int processes() const;
  GangOptions gang(std::int64_t attempt);
  void record_end(const SupervisedEnd& end);
  void show();
  void say(const std::string& text) const;

  // foreign.cpp: a program that is not ours
  GangEnd run_foreign(std::int64_t attempt, const std::function<StopRequest()>& stop);
  void explain(GangEnd& end);
  void hear(const ForeignProgram::Records& records);
  void on_resumed(std::int64_t first_step);
  void on_open_interruption(InterruptionRecord r, Seconds delay);

  // progress.cpp: what its processes tell, and what an interruption costs
  void on_save(Seconds blocked, Seconds took);
  void on_start(std::int64_t attempt);
  void on_output(int member, std::string_view line);
  void grow();
  void on_progress(int member, const ProgressReport& r);
  void look_for_slow(int member, std::int64_t step, Seconds own);
  void on_interruption(std::int64_t attempt, const GangEnd& end, Seconds delay);
  std::int64_t goes_on_from() const;
  std::optional<std::int64_t> newest_saved() const;
  std::optional<std::int64_t> newest_checkpoint() const;
  bool waits_for_nobody() const;
  std::vector<std::int64_t> saved_steps() const;
  double lost_by_all() const;

  const Plan& plan_;
  const LocalRunOptions& options_;
  const RunObserver& observer_;
  RunFiles files_;
  /// Behind the lock of files_: an earlier start's is of no use to anybody any more.
  std::optional<JobSecretFile> secret_;
  RunTracker tracker_;
  SlowRanks slow_ranks_;
  std::optional<RunMoney> money_;  // nullopt: a price is unknown
  LocalJob job_;
  std::vector<std::int64_t> done_;             // by rank: its steps
  std::optional<ForeignProgram> foreign_;      // nullopt: reckon-worker
  std::optional<std::int64_t> saved_;          // as that program told
  StepWatch steps_;                            // likewise
  std::optional<StandingProcesses> standing_;  // nullopt: all start again
  OpenInterruption interruption_;
  FruitlessStarts fruitless_;
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace reckon
