#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/launch/progress_reader.h"
#include "executor/launch/run_money.h"
#include "executor/launch/run_tracker.h"
#include "executor/launch/step_watch.h"
#include "executor/train/records/run_directory.h"
#include "sim/forecast/forecast.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/plan.h"

// A plan run for real on this machine, watched from its first start to its end.
namespace reckon {

/// A program that is not ours, in place of reckon-worker.
struct LocalProgram {
  ContainerSpec container;  // its command and variables; the image is not used
  ProgressReader progress;
};

struct LocalRunOptions {
  RunDirectory directory;
  std::optional<LocalProgram> foreign;
  std::filesystem::path worker;        // the program
  std::vector<std::string> arguments;  // of every process
  std::string plan;                    // the artifact, kept in the directory; empty: none
  PlanDigests digests;                 // of that artifact
  std::string forecast_text;           // of that plan; empty: the one that is there stays
  bool resume = false;                 // the directory holds a run that is to be gone on with
  RetryRules retry;
  Seconds notice{30};
  Seconds progress_deadline{60}, start_deadline{300}, grace{5};
  StepPatience patience = patience_with_program({});  // with `foreign`, which reports nothing else
  std::optional<Seconds> deadline;                    // of the job, from its first start
  /// Of the whole run, in money; needs the forecast's prices. It stops behind a checkpoint when one
  /// more step and its save would pass it.
  std::optional<Usd> budget;
  /// Why it is asked to stop, where that is not the user's wish; "": it is, or nobody asks.
  /// Recorded as the end's detail.
  std::function<std::string()> stop_reason;
};

/// Of a run that has finished nothing is started and no record is added. Throws FileError where the
/// directory cannot be used (another job in it, a run that `resume` did not name, no run to
/// resume), and what supervise() throws. `forecast` must be feasible.
RunEnd run_locally(const Plan& plan, const Forecast& forecast, const LocalRunOptions& options,
                   const RunObserver& observer, const std::function<StopRequest()>& stop);

}  // namespace reckon
