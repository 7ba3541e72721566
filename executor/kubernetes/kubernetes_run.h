#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/kubernetes/pods/cluster_gang.h"
#include "executor/kubernetes/run_state.h"
#include "executor/launch/progress_reader.h"
#include "executor/launch/run_files.h"
#include "executor/launch/run_tracker.h"
#include "executor/launch/step_watch.h"
#include "sim/forecast/forecast.h"
#include "sim/measurement/slow_ranks_outlook.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/plan.h"

// A plan run in a cluster, watched from here. The cluster holds all of it: whoever watches may end
// and another may go on.
namespace reckon::kubernetes {

struct KubernetesRunOptions {
  RunFilesOptions files;  // kept here, as those of a run on this machine
  /// What is in the cluster. A new run's is created; else the run is there.
  RunState state;
  bool create = true;
  /// The last of the state's parts begins with this start, and is written, with the plan, when it
  /// does: from then on its nodes are paid for.
  bool begins_part = false;
  std::int64_t first_attempt = 0;
  std::int64_t objects = 0;     // attempt that those pods are labelled with
  bool first_is_there = false;  // its pods were made by an earlier launcher
  /// Made anew before the first attempt that is started from here; nullopt: the pods want none.
  std::optional<SecretName> secret;
  bool secret_is_there = false;  // pods that an earlier launcher made have it
  PlanDigests digests;           // of the artifact that runs
  /// What is applied for an attempt.
  std::function<std::string(std::int64_t attempt)> manifests;
  RetryRules retry;
  /// The program is the user's own, and tells of its progress in this way; nullopt: reckon-worker.
  std::optional<ProgressReader> foreign;
  /// Pods outlive a start (StandingPods), by workload.restart. The manifests are of such pods.
  bool stays = false;
  Seconds notice{30};
  /// How long a step may take to be told of: processes that hang start again.
  StepPatience patience;
  bool cordon_slow = false;  // the node of a rank that is slow beyond its kind is replaced
  Seconds pending_deadline{900};
  std::optional<Seconds> deadline;  // of the job, from its first start
  /// Of the whole run: it stops behind a checkpoint where more would pass it.
  std::optional<Usd> budget;
  /// Why a run that was stopped goes on with another part, which is begun by whoever says so; "":
  /// it does not, and is told to be stopped.
  std::function<std::string()> goes_on;
};

/// One process of the job, for a table.
struct RankStatus {
  std::string name, node, state;
  std::int64_t steps_done = 0;
  Seconds step{};  // the last
};

struct KubernetesObserver {
  RunObserver run;
  std::function<void(const std::vector<RankStatus>&)> ranks;  // ten times a second
  /// A node is about to be replaced. `then`: the run's ends with the replacement. The observer
  /// fills in the decision's forecasts, with it and without.
  std::function<void(DecisionRecord& decision, const RunStatus& now, const RunEnds& then)> decides;
};

/// "rank 3", "rank 4 (server 0)". Pods that stand by have none.
std::vector<std::string> process_names(const PlannedStrategy& strategy);

/// Throws KubectlError for what does not pass by itself, FileError where the directory cannot be
/// used. `forecast` must be feasible.
RunEnd run_on_kubernetes(const Plan& plan, const Forecast& forecast, const Kubectl& kubectl,
                         const KubernetesRunOptions& options, const KubernetesObserver& observer,
                         const std::function<StopRequest()>& stop);

}  // namespace reckon::kubernetes
