#pragma once
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/launch/gang.h"
#include "executor/launch/progress_lines.h"

// A small sample of a job: one process, watched until it has done so many steps.
namespace reckon {

/// The sample says nothing: the program failed, printed no progress, took too long, was stopped.
/// The text has the reason and the last lines that it printed.
struct TrialError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct TrialOptions {
  ProcessSpec process;
  /// Of a program that does not report progress as reckon-worker does.
  std::optional<ProgressPattern> pattern;
  std::int64_t steps = 50;  // then it is asked to stop (SIGTERM; SIGKILL after `notice`)
  Seconds timeout{600};     // for all of it
  Seconds notice{10};
};

struct TrialSample {
  std::vector<double> seconds;               // of a step; one for each line that told, in order
  std::int64_t steps = 0;                    // that they stand for
  std::optional<double> loss;                // the last, as the program prints it
  std::optional<double> samples_per_second;  // as the program says, the last
  std::string clock;  // whose: "the program's own clock", "the time between its lines"
  std::vector<std::string> warnings;
};

/// `on_step`: steps so far. Throws TrialError, and std::runtime_error where the process cannot be
/// started.
TrialSample run_trial(const TrialOptions& options, const std::function<void(std::int64_t)>& on_step,
                      const std::function<StopRequest()>& stop);

}  // namespace reckon
