#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/launch/supervise.h"
#include "executor/train/run_directory.h"
#include "sim/calibration/live_forecast.h"
#include "sim/forecast/forecast.h"
#include "sim/scenario/plan.h"

// A plan run for real on this machine, watched from its first start to its end.
namespace reckon {

struct LocalRunOptions {
  RunDirectory directory;
  std::filesystem::path worker;             // the program
  std::vector<std::string> arguments;       // of every process
  std::string plan_text;                    // kept as the directory's plan.yaml; empty: none
  std::string request_text, forecast_text;  // of a new run: its request.json, forecast.json
  bool resume = false;                      // the directory holds a run that is to be gone on with
  RetryRules retry;
  Seconds notice{30};
  Seconds progress_deadline{60}, start_deadline{300}, grace{5};
  std::optional<Seconds> deadline;  // of the job, from its first start
};

/// Where the run is, for who watches.
struct RunStatus {
  std::string phase;  // "starting", "computing", ..., "waiting"
  std::int64_t attempt = 0;
  std::int64_t steps_done = 0, steps = 0;
  std::optional<double> loss;
  SamplesPerSecond samples_per_second{};  // of the last second
  Seconds step{}, step_forecast{};        // median of the last steps; 0: none yet
  std::int64_t interruptions = 0;
  Seconds elapsed{};  // since the first start
  LiveEstimate estimate;
  std::optional<Seconds> deadline;
};

struct RunObserver {
  std::function<void(const RunStatus&)> status;  // ten times a second
  std::function<void(std::string_view process, std::string_view line)> output;
  std::function<void(const std::string&)> message;  // of what happens to the job, one line
};

struct LocalRunEnd {
  SupervisedEnd end;
  RunStatus status;                        // the last
  std::optional<std::int64_t> checkpoint;  // newest complete one: where a resumed run goes on
};

/// Throws FileError where the directory cannot be used (another job in it, a run that `resume` did
/// not name, no run to resume), and what supervise() throws. `forecast` must be feasible.
LocalRunEnd run_locally(const Plan& plan, const Forecast& forecast, const LocalRunOptions& options,
                        const RunObserver& observer, const std::function<StopRequest()>& stop);

}  // namespace reckon
