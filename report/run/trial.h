#pragma once
#include <optional>
#include <string>
#include <vector>

#include "executor/launch/trial_run.h"
#include "sim/forecast/forecast.h"
#include "sim/measurement/trial.h"

// The answer of `reckon trial`. Values in, text out.
namespace reckon {

/// One way to do the whole job.
struct TrialRow {
  std::string name;  // "this machine", "the plan", "cluster.pools.node.machine=..."
  Seconds step{};
  Quantiles time_seconds;  // of this machine: from the interval of the mean step
  std::optional<Quantiles> cost_usd;
  std::string reason;  // why there is no forecast of it; else empty
};

struct Trial {
  std::string scenario, program, machine;
  TrialSample sample;
  TrialFit fit;
  std::int64_t batch = 1;      // samples of a step
  Seconds forecast_step{};     // of one worker of the plan by itself, before the trial
  std::vector<TrialRow> rows;  // the first: this machine
  std::vector<std::string> warnings;
};

std::string trial_table(const Trial& trial);
std::string trial_json(const Trial& trial);

}  // namespace reckon
