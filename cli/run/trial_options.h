#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/shared.h"
#include "executor/launch/trial_run.h"

namespace reckon::cli {

struct TrialCommandOptions : Files,
                             Sweeps,
                             OutPath,
                             AnswerFormat,
                             ScenarioChanges,
                             Sampling,
                             NetworkChoice,
                             CatalogChoice {
  std::int64_t steps = TrialOptions{}.steps;
  std::string program;   // a command line for sh; "": ours, or what the scenario's container runs
  std::string progress;  // a regular expression; "": what common programs print
  Seconds timeout = TrialOptions{}.timeout;
  std::optional<std::int64_t> batch;
  bool like_pool = false;
  std::optional<double> usd_per_hour;  // of this machine

  std::optional<std::int64_t> layouts;  // how many of the best are run; nullopt: one worker alone

  std::vector<Option> declared();
  /// Throws UsageError where options contradict each other.
  void check() const;
};

}  // namespace reckon::cli
