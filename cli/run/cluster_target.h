#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options/shared.h"
#include "cli/run/cluster_options.h"
#include "executor/kubernetes/kubectl.h"
#include "executor/kubernetes/pods/pod_view.h"
#include "executor/kubernetes/run_state.h"

// What `reckon status`, `stop` and `delete` share: a run that is in a cluster.
namespace reckon::cli {

struct ClusterCommandOptions : Files, KubernetesObjects {
  std::optional<RunPlace> on;

  std::vector<Option> declared() { return {on_option(on), context_option(), space_option()}; }
};

struct ClusterTarget {
  std::string run;
  kubernetes::Kubectl kubectl;
};

/// Throws UsageError unless --on kubernetes is said.
void refuse_unless_in_cluster(const ClusterCommandOptions& options);
/// The one run that is named. Throws UsageError.
ClusterTarget target_of(const Command& self, const ClusterCommandOptions& options);

/// Says it; the exit code.
int no_such_run(const ClusterTarget& target);

/// So many steps are done, as the first rank that tells of any says; 0: none tells.
std::int64_t steps_told(const ClusterTarget& target, const kubernetes::RunState& state);

/// The pods of the newest attempt, by rank.
std::vector<kubernetes::PodView> newest_pods(const ClusterTarget& target);

}  // namespace reckon::cli
