#pragma once
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/catalog/catalog.h"
#include "sim/queue/job_list.h"
#include "sim/queue/job_times.h"
#include "sim/queue/karpenter/offerings.h"
#include "sim/scenario/planned/cluster.h"
#include "sim/scenario/spec/disruptions.h"
#include "sim/scenario/spec/scheduler.h"

// Jobs of many users on nodes that Karpenter makes, packs, deletes and replaces.
namespace reckon {

/// What Karpenter makes nodes of.
struct KarpenterMarket {
  KarpenterSpec spec;
  std::vector<LaunchOffering> offerings;
  /// By offering: from the request until a node is ready; the median below expireAfter.
  std::vector<Fact<Seconds>> delays;
  ReclaimSpec reclaim;  // of spot nodes, by their age since they are ready; no trace
  Seconds notice{};     // before a reclaim
  std::optional<std::chrono::sys_seconds> begins;  // the date of time 0
  ShortageRules shortage{};                        // of the spot market of each instance type
  std::vector<Seconds> drift{};                    // when all nodes that are there are drifted
};

/// A node from its request, from when on it is paid for, to its end.
struct LaunchedNode {
  std::size_t offering = 0;
  SimTime requested{}, gone = SimTime::max();
};

/// Why the disruption loop takes nodes; `drift` is no consolidation.
enum class ConsolidationKind { empty, drift, several, single };
inline constexpr std::size_t kConsolidationKinds = 4;
struct ConsolidationCount {
  std::int64_t commands = 0, nodes = 0, replacements = 0;
};

struct KarpenterRun {
  QueueRun run;  // utilization: GPU time held over that of the nodes while they were there
  std::vector<LaunchedNode> nodes;
  std::vector<Holding> holdings;  // nodes by number
  std::vector<RunSpan> spans;     // in order of their ends
  std::array<ConsolidationCount, kConsolidationKinds> consolidations{};
  std::int64_t starved = 0;   // jobs that fit a node and never ended; `hopeless` are among them
  std::int64_t hopeless = 0;  // evicted kMostInVain times in a row, and never a checkpoint between
  std::int64_t reclaims = 0;  // nodes that the provider reclaimed, or that went at its notice
  std::int64_t refused = 0;   // requests for a node, for want of capacity
  int most_gpus = 0;          // of nodes at a time
};

/// A job that was evicted so often in a row before its first checkpoint is not tried again.
inline constexpr int kMostInVain = 100;

/// karpenter.sh/do-not-disrupt of the job's pods.
inline bool keeps_its_nodes(const JobRequest& job, const KarpenterMarket& market) {
  return job.owner.do_not_disrupt.value_or(market.spec.do_not_disrupt);
}
/// Does an empty node of the offering, which its NodePool's limits admit, hold a pod of the job?
bool fits_node(const JobRequest& job, const KarpenterMarket& market, std::size_t offering);
/// How long a pod of the job may run at a time on a new node of the offering: from the least time
/// that the node takes to come to its expireAfter, and for a pod that may not be evicted the
/// terminationGracePeriod; SimDuration::max(): for ever.
SimDuration longest_stay(const JobRequest& job, const KarpenterMarket& market,
                         std::size_t offering);
/// Does the job end, or keep a checkpoint, in less?
bool gets_on(const JobRequest& job, SimDuration stay, std::optional<Seconds> checkpoint);

/// kube-scheduler binds the pods of jobs one by one, by priority, then age, each to a ready node
/// with room for its CPUs, memory and GPUs (NodeResourcesFit with those three resources alike; of
/// equal nodes the oldest, where kube-scheduler draws). A job runs while all its pods are bound; it
/// evicts nobody. Karpenter sees pods that no node takes: a batch ends when no pod has come for
/// batch_idle, at the latest batch_max after its first ["Settings"], and is packed (pack_pods()).
/// Every 10 s (pollingPeriod) it looks for nodes to consolidate, one command at a time, empty ones
/// first, then several, then one ["Disruption", "Consolidation"], within the budgets; what it finds
/// is done 15 s later (consolidationTTL) if it still holds. Drifted nodes with pods go behind the
/// empty ones, one at a time, the first that drifted first, when what their pods need is ready,
/// within the budgets of reason Drifted ["Disruption", "Drift"]; a pod that may not be evicted
/// keeps its node, unless the NodePool has a terminationGracePeriod ["TerminationGracePeriod"]. An
/// evicted pod comes back at once; its job stands still until it is bound again, and keeps whole
/// multiples of `checkpoint`. The provider takes a spot node back at an age of the law; its pods
/// come back then. With interruptionQueue Karpenter hears of it at the notice, taints the node and
/// evicts the pods that may be evicted ["Disruption", "Interruption"]; the last of them ends it.
/// Pods of a node that never came are packed anew; a command whose replacement never came is given
/// up. Each instance type has a spot market with shortages (sim/cluster/disruptions.h). A request
/// in one is refused at once: the claim's next offering is asked for, and the offering is in no
/// claim for 3 minutes ["NodePools", "Capacity Type"; UnavailableOfferingsTTL in
/// aws/karpenter-provider-aws pkg/cache/cache.go]. Pods whose claim got nothing are packed again 10
/// s later, without what is unavailable. On-demand nodes always are there. Not modelled: daemons,
/// the time of an eviction. Draws are of (seed, replication, purpose, number of the node): how long
/// a node takes to come, and how old it gets. Jobs have FixedTime; it counts on any node. What a
/// pod asks for is at its JobRequest's `worker`.
KarpenterRun run_karpenter(std::span<const JobRequest> jobs, const KarpenterMarket& market,
                           const KubernetesSpec& kubernetes, std::size_t first_measured,
                           std::size_t measured, const RunOptions& options = {});

}  // namespace reckon
