#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/load/load.h"
#include "cli/options/shared.h"

namespace reckon::cli {

/// A job that is submitted to a shared cluster as it is now.
struct SubmitChoice {
  std::vector<std::string> cluster;  // files and folders; empty: the job has its cluster to itself
  std::string at, queue, user, account;
  std::optional<double> priority;
  std::optional<Seconds> time_limit;

  Option cluster_option();
  std::vector<Option> submit_options();
  /// Throws UsageError where an option of a submission is given without --cluster.
  void check_submit() const;
};

/// "If I submit FILE's job now, when does it start and end?"
int simulate_submission(const std::string& file, const ScenarioChanges& changes,
                        const Sampling& sampling, const SubmitChoice& choice, OutputFormat format,
                        const LoadedCatalog& catalog, const NetworkModel& network);

}  // namespace reckon::cli
