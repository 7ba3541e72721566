#pragma once
#include <string>
#include <vector>

#include "executor/kubernetes/kubernetes_run.h"
#include "executor/kubernetes/leftovers.h"

namespace reckon {

/// What nobody owns any more and what it costs an hour, a line each, and the sum; "": nothing, and
/// all was looked at.
std::string leftovers_table(const kubernetes::Leftovers& leftovers);

/// A run in a cluster as `reckon status` shows it.
struct ClusterRunStatus {
  kubernetes::RunState state;
  std::optional<std::int64_t> attempt;  // the newest
  /// nullopt: no Lease is there, or it may not be looked at.
  std::optional<kubernetes::LauncherView> launcher;
  std::vector<kubernetes::RankStatus> ranks;
};
/// "launcher on HOST (process 123), which renewed its lease at TIME", or that there is none.
std::string launcher_line(const ClusterRunStatus& status);
/// `run`: nullptr where no run was asked for.
std::string status_json(const ClusterRunStatus* run, const kubernetes::Leftovers& leftovers);

}  // namespace reckon
