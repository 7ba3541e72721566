#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/replan.h"
#include "executor/kubernetes/run_state.h"
#include "sim/forecast/forecast.h"
#include "sim/scenario/artifact/artifact.h"

// `reckon run --on kubernetes --replan`: what may be changed of a run in a cluster, and how it goes
// on so.
namespace reckon::cli {

/// The user's command that attaches to the run, without what it is to do: "reckon run --on
/// kubernetes --attach NAME --namespace SPACE".
std::string attach_command(const RunOptions& options, const std::string& run,
                           const std::string& name_space);

/// A cluster. The worker pool may have what the scenario says where an autoscaler makes its nodes,
/// else what the cluster has room for beside others' pods. `kubectl` must outlive it.
RunsAt runs_in_cluster(const RunOptions& options, const std::string& run,
                       const kubernetes::Kubectl& kubectl);

/// A part of a run in a cluster: its plan, and what is forecast of it.
struct ClusterPart {
  RunArtifact artifact;
  Forecast forecast;
};

/// Brings a decided plan into the cluster before the run is stopped for it: a launcher that takes
/// this one's place then goes on under it. It is made beside the run.
class DecidedPlan {
 public:
  /// Throws where there is no such plan; called from another thread.
  using Make = std::function<ClusterPart(const std::vector<std::string>& changes)>;

  /// What is given must outlive it.
  DecidedPlan(Make make, const kubernetes::Kubectl& kubectl, Display& display);
  ~DecidedPlan();
  DecidedPlan(const DecidedPlan&) = delete;
  DecidedPlan& operator=(const DecidedPlan&) = delete;

  /// Ten times a second, of a run that is to stop. `state`: as this part of the run began;
  /// `attempt`: the one under way.
  void look(const DecisionRecord& decision, const kubernetes::RunState& state,
            std::int64_t attempt);
  /// It is in the cluster: the run can be stopped.
  bool is_there() const { return part_.has_value(); }
  ClusterPart take();

 private:
  const Make make_;
  const kubernetes::Kubectl& kubectl_;
  Display& display_;
  std::atomic<bool> cancelled_ = false;
  bool failed_ = false;
  std::future<ClusterPart> made_;
  std::optional<ClusterPart> part_;
};

}  // namespace reckon::cli
