#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/words.h"

// Who makes and deletes nodes, and how each is configured, in its own words. A scenario and its
// plan have the same values. Karpenter's: karpenter.h.
namespace reckon {

/// `cluster.autoscaler:`. Node pools without `autoscaling: true` keep their size under any.
enum class AutoscalerKind { cluster_autoscaler, karpenter, node_auto_provisioning, slurm };
constexpr auto words_of(AutoscalerKind) {
  using A = AutoscalerKind;
  return std::array{
      Word<A>{"cluster_autoscaler", A::cluster_autoscaler}, Word<A>{"karpenter", A::karpenter},
      Word<A>{"node_auto_provisioning", A::node_auto_provisioning}, Word<A>{"slurm", A::slurm}};
}
/// As a sentence names it: "Karpenter".
constexpr std::string_view called(AutoscalerKind kind) {
  switch (kind) {
    case AutoscalerKind::cluster_autoscaler:
      return "the cluster-autoscaler";
    case AutoscalerKind::karpenter:
      return "Karpenter";
    case AutoscalerKind::node_auto_provisioning:
      return "node auto-provisioning";
    case AutoscalerKind::slurm:
      return "Slurm";
  }
  return "";
}

// ---- the cluster-autoscaler: its flags [kubernetes/autoscaler, cluster-autoscaler/FAQ.md]

/// `--expander`.
enum class Expander { random, most_pods, least_waste, least_nodes, price, priority };
constexpr auto words_of(Expander) {
  using E = Expander;
  return std::array{Word<E>{"random", E::random},
                    Word<E>{"most-pods", E::most_pods},
                    Word<E>{"least-waste", E::least_waste},
                    Word<E>{"least-nodes", E::least_nodes},
                    Word<E>{"price", E::price},
                    Word<E>{"priority", E::priority}};
}

/// A row of the ConfigMap cluster-autoscaler-priority-expander: node groups whose name one of the
/// regular expressions is found in.
struct ExpanderPriority {
  int priority = 0;  // the highest wins
  std::vector<std::string> groups;
};

bool is_regular_expression(const std::string& text);

/// The pools that may serve the same pods are then node groups among which an expander chooses.
struct ClusterAutoscalerSpec {
  std::vector<Expander> expander{Expander::random};  // a chain: each breaks the ties of the former
  std::vector<ExpanderPriority> priorities;
  bool balance_similar_node_groups = false;
};

// ---- how a pool's nodes are obtained

/// standard: a node comes after its provisioning delay. flex_start: GKE's flex-start, each node
/// when capacity is there; flex_start_queued: with queued provisioning, all at once
/// (ProvisioningRequest class queued-provisioning.gke.io). best_effort_atomic, check_capacity: the
/// classes best-effort-atomic-scale-up and check-capacity of autoscaling.x-k8s.io.
enum class ProvisioningModel {
  standard,
  flex_start,
  flex_start_queued,
  best_effort_atomic,
  check_capacity
};
constexpr auto words_of(ProvisioningModel) {
  using P = ProvisioningModel;
  return std::array{Word<P>{"standard", P::standard}, Word<P>{"flex_start", P::flex_start},
                    Word<P>{"flex_start_queued", P::flex_start_queued},
                    Word<P>{"best_effort_atomic", P::best_effort_atomic},
                    Word<P>{"check_capacity", P::check_capacity}};
}
constexpr bool is_flex_start(ProvisioningModel model) {
  return model == ProvisioningModel::flex_start || model == ProvisioningModel::flex_start_queued;
}
/// All pods that wait get nodes by one request, or none does.
constexpr bool is_atomic(ProvisioningModel model) {
  return model == ProvisioningModel::flex_start_queued ||
         model == ProvisioningModel::best_effort_atomic;
}

// ---- GKE node auto-provisioning and custom ComputeClasses, by the names of their fields
// [ClusterAutoscaling of the GKE API; cloud.google.com/v1 ComputeClass]

/// Of all nodes of the cluster together: "cpu", "memory" in GB, or an accelerator.
struct ResourceLimit {
  std::string resource_type;
  double maximum = 0;  // cores, GB or accelerators
};

/// A row of `priorities`: which machines, and how they are bought.
struct ComputeClassRule {
  std::string machine_family, machine_type;  // "": any
  bool spot = false, flex_start = false;
  std::optional<int> min_cores;
  std::optional<double> min_memory_gb;
  std::optional<Seconds> max_run_duration;
};

enum class WhenUnsatisfiable { DoNotScaleUp, ScaleUpAnyway };
constexpr auto words_of(WhenUnsatisfiable) {
  using W = WhenUnsatisfiable;
  return std::array{Word<W>{"DoNotScaleUp", W::DoNotScaleUp},
                    Word<W>{"ScaleUpAnyway", W::ScaleUpAnyway}};
}

struct ComputeClassSpec {
  std::vector<ComputeClassRule> priorities;  // first the one that is preferred
  WhenUnsatisfiable when_unsatisfiable = WhenUnsatisfiable::DoNotScaleUp;
  bool optimize_rule_priority = false;         // activeMigration
  std::optional<Seconds> consolidation_delay;  // autoscalingPolicy.consolidationDelayMinutes
};

struct NodeAutoProvisioningSpec {
  std::vector<ResourceLimit> resource_limits;
  std::vector<std::string> locations;  // zones; empty: all
  std::optional<ComputeClassSpec> compute_class;
  /// The annotation cluster-autoscaler.kubernetes.io/safe-to-evict of the jobs' pods.
  bool safe_to_evict = false;
};

// ---- Slurm: parameters of slurm.conf [slurm.schedmd.com, "Power Saving Guide"]

/// "pool", or "pool:count".
struct SlurmExcludedNodes {
  std::string pool;
  std::optional<int> count;  // nullopt: all
};

struct SlurmPowerSpec {
  std::optional<Seconds> suspend_time;  // nullopt: -1, nodes stay
  Seconds suspend_timeout{30}, resume_timeout{60};
  int resume_rate = 300, suspend_rate = 60;  // nodes a minute; 0: no limit
  std::vector<SlurmExcludedNodes> suspend_exc_nodes;
  // SlurmctldParameters
  bool idle_on_node_suspend = false;
  Seconds power_save_interval{10};
};

}  // namespace reckon
