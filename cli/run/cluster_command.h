#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/load/load.h"
#include "cli/run/cluster_replan.h"
#include "cli/run/run_lease.h"
#include "cli/run/run_options.h"
#include "cli/run/run_parts.h"
#include "exchange/kubernetes/kubernetes.h"
#include "executor/kubernetes/kubernetes_run.h"
#include "executor/kubernetes/preflight.h"
#include "executor/train/trainable.h"

// The class behind run_in_cluster(): run_kubernetes.cpp begins a run or takes it up,
// cluster_watch.cpp watches it from part to part.
namespace reckon::cli {

/// A run in a cluster between the command line and the executor.
class ClusterCommand {
 public:
  ClusterCommand(const RunOptions& asked, std::span<const std::string> arguments)
      : arguments_(arguments), asked_(asked), out_(asked.out) {}

  int run() { return asked_.attach.empty() ? begin() : take_up(asked_.attach); }

 private:
  // ---- a new run

  int begin();

  // ---- one that is there

  int take_up(const std::string& run);

  /// The exit code, where there is no such run or nothing to do for it.
  static std::optional<int> is_over(const kubernetes::Kubectl& kubectl, const std::string& run,
                                    bool resume);
  static std::optional<int> is_over(const kubernetes::RunState& state, bool resume);

  /// The plan that these options make. The budget is read of the same scenario.
  RunArtifact artifact_by(const RunOptions& options);

  /// The plan with the user's changes. Throws WrongInput where it would train something else.
  RunArtifact changed_plan(const RunOptions& options);

  /// A part of the run begins with this attempt, if it can be started (begins_part).
  static void begin_part(kubernetes::RunState& state, std::int64_t attempt);

  /// The new plan's pods, as the cluster sees them: the exit code where it does not take them.
  std::optional<int> refused(const RunOptions& options, const kubernetes::Kubectl& kubectl,
                             const kubernetes::ClusterFacts& facts,
                             const kubernetes::RunState& state, std::int64_t attempt);

  int go_on(RunLease& lease, const kubernetes::ClusterFacts& facts, kubernetes::RunState state,
            bool resume);

  // ---- both

  kubernetes::Kubectl kubectl_of(const std::string& run) const;

  const Plan& plan() const { return artifact_.plan; }
  bool pods_stay() const { return !artifact_.container && goes_on_in_pods(plan()); }

  /// The exit code, where there is nothing to run.
  std::optional<int> forecast(const RunOptions& options);

  KubernetesExport manifest_options(const RunOptions& options, const kubernetes::Kubectl& kubectl,
                                    const kubernetes::ClusterFacts& facts,
                                    const kubernetes::RunState& state) const;

  Expected<std::string> manifests(KubernetesExport manifest, std::int64_t attempt) const;

  kubernetes::PreflightQuestion question(const RunOptions& options, const std::string& run,
                                         const std::string& first, bool makes_run) const;

  Seconds between_steps() const;
  kubernetes::KubernetesRunOptions run_options(const RunOptions& options,
                                               const std::string& run) const;

  /// The plan with what was decided, and its forecast; from another thread.
  ClusterPart decided(const std::vector<std::string>& changes) const;

  /// The state of a run that goes on with another part. nullopt: somebody else stopped it.
  static std::optional<kubernetes::RunState> state_to_go_on(const kubernetes::Kubectl& kubectl,
                                                            const std::string& run);
  static bool wait_unless_stopped(const kubernetes::KubectlError&, Seconds delay);

  /// The next part, behind an end of the one before. False: the run was stopped.
  bool begin_next(const RunOptions& options, const kubernetes::Kubectl& kubectl,
                  kubernetes::KubernetesRunOptions& how, ClusterPart part,
                  const std::vector<std::string>& changes, int starts);

  int watch(const RunOptions& options, RunLease& lease, const std::string& name_space,
            kubernetes::KubernetesRunOptions& how, KubernetesExport manifest);

  int tell_end(const RunOptions& options, const std::string& name_space,
               const kubernetes::KubernetesRunOptions& how, const RunEnd& end, Display& display);

  std::span<const std::string> arguments_;  // of the user
  const RunOptions& asked_;
  std::string out_;  // "": runs/NAME
  RunArtifact artifact_;
  Places places_;  // of the scenario, where it was read just now
  std::optional<Forecast> forecast_;
  std::optional<LoadedCatalog> catalog_;
  std::optional<Usd> budget_;
  RunOptions makes_;           // that make the plan in force
  bool plan_is_read_ = false;  // by makes_, of the run's directory: changes are in it
};

}  // namespace reckon::cli
