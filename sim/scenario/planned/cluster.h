#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/fact.h"
#include "sim/base/money.h"
#include "sim/catalog/catalog.h"
#include "sim/scenario/planned/prices.h"
#include "sim/scenario/planned/workload.h"
#include "sim/scenario/processor_rates.h"
#include "sim/scenario/scenario.h"

// The cluster of a Plan: its pools and the rules that its nodes live by.
namespace reckon {

struct PlannedPool {
  PoolId id{};
  std::string name;
  Role role = Role::worker;
  Machine machine;
  std::optional<Accelerator> accelerator;
  int accelerators_per_node = 0;
  std::optional<TpuSlice>
      slice;  // a node of the pool is then the whole slice, created or reclaimed as one
  int nodes_initial = 1, nodes_min = 1, nodes_max = 1;
  bool autoscaling = false;
  CapacityType pricing = CapacityType::on_demand;
  /// The pool, by its index, that has the same hardware and role and whose nodes this one's replace
  /// while they do not come. No job is placed here but in its stead.
  std::optional<std::size_t> fallback_for;
  /// The NodePool of Karpenter, by its index in PlannedCluster::karpenter, whose nodes these are. A
  /// pool that Karpenter scales has one such pool for each machine and capacity type that may serve
  /// its pods: itself, and its fallback pools. Its own nodes have no preference.
  std::optional<std::size_t> node_pool;
  /// Under node auto-provisioning: the place of the pool's rule among the priorities of the
  /// ComputeClass, 0 first.
  int rank = 0;
  ProvisioningModel provisioning_model = ProvisioningModel::standard;
  Fact<Seconds> capacity_wait;              // of flex-start: request to capacity
  std::optional<Seconds> max_run_duration;  // of a node, from ready; nullopt: none
  Fact<Seconds> pool_creation;  // of a pool that is made for its first node: request to there
  /// How long this pool's own nodes are waited for before the request is withdrawn; nullopt: the
  /// autoscaler's max_node_provision_time. Set on the pool that has the fallback.
  std::optional<Seconds> patience;
  NodePrice price;
  std::optional<PlannedReservation> reservation;
  Seconds minimum_rental{};           // a node is billed for at least that; 0: the provider's rule
  Fact<Seconds> provisioning;         // request to schedulable, drivers included: median; range =
                                      // 5th..95th percentile
  Efficiency efficiency;              // of the accelerator at the workload's precision; a worker
                                      // on CPUs has its `launch` only
  Fact<Seconds> host_step;            // of a worker on CPUs: its own time of a step, outside layers
  LinkClass peer_link, network_link;  // between accelerators of one node; between nodes
  Fact<double> cpu_flops_per_vcpu;    // parameter server's update and CPU training, FLOP/s
  Fact<BytesPerSecond> cpu_memory_bandwidth_per_vcpu;  // the same: a vCPU's share of the host's
  /// Of a worker on CPUs of a machine that was probed, in place of the two before. nullptr: it was
  /// not.
  std::shared_ptr<const WorkerRates> measured_rates;
};

/// Rules of the service the cluster runs under; numbers of catalogs/operations.yaml.
struct AutoscalerRules {
  Seconds scan_interval{}, scale_down_unneeded_time{}, scale_down_delay_after_add{},
      max_node_provision_time{};
  Seconds node_group_backoff_initial{}, node_group_backoff_max{}, node_group_backoff_reset{};
  double scale_down_utilization_threshold = 0.5;  // 0..1
  int max_nodes_per_scale_up = 1000;
};
struct RetryRules {  // Kubernetes Job
  int backoff_limit = 6;
  Seconds base{}, cap{};  // base * 2^k, capped
  bool counts_disruptions =
      false;  // false: podFailurePolicy ignores DisruptionTarget (reclaim, maintenance)
};
struct BillingRules {
  Seconds granularity{}, minimum{};
  Seconds free_if_reclaimed_within{};  // GCE: no charge when preempted in the first minute
  HourlyRate management;               // the cluster's fee
};
struct JobStartRules {  // from "nodes ready" to "first step"
  Fact<Seconds> image_pull, framework_start;
  Fact<Seconds> compile;  // graph compilation of the first step (TPU: XLA)
};
struct FrameworkRules {
  Fact<Bytes> reserve;  // of an accelerator, gone before the first tensor: runtime, kernels, NCCL
  Fact<Bytes> communicator;    // buffers of each axis of the layout after the first
  Fact<double> fragmentation;  // a share: reserved by the caching allocator over allocated, less 1
  Bytes buffers_per_parameter{};  // of the stack, besides gradients and optimizer
  bool keeps_scores = false;      // the stack's attention keeps its softmax's output
  Fact<double> memory_spread;     // of ln: memory_deviation where nothing comparable was measured
  /// ln(measured peak / predicted) of the tensors: mean and standard deviation of one more run; 0:
  /// the prediction is exact.
  double memory_mean = 0, memory_deviation = 0;
  Fact<double> step_jitter;       // standard deviation over mean of one worker's step time
  Fact<double> overlap_slowdown;  // of arithmetic, seconds a second of transfer behind it; TPU: 0
  Fact<double> expert_imbalance;  // factor: rows of the busiest expert-parallel rank over the mean
};
/// Switches between the nodes. Nodes stand leaf by leaf in the order of their ranks.
struct PlannedFabric {
  int nics = 1;                 // of a node
  bool rails = false;           // NIC k of all nodes of a leaf is on switch k of it
  int nodes_per_leaf = 0;       // 0: all are on one
  double oversubscription = 1;  // factor: bandwidth of a leaf's nodes over its uplinks
  bool in_network_reduction = false;
};
struct ReclaimRules {
  ReclaimSpec law;  // applies to spot pools
  std::optional<Fact<Seconds>>
      assumed_mean;  // the scenario gives no law: the exponential one's mean is ours
  Seconds notice{};
  std::vector<std::vector<Seconds>>
      trace;               // law TraceReclaim: by node slot, times at which it is taken, ascending
  Seconds trace_length{};  // of the trace; it starts again at its end
};
/// When no spot node can be had. The cluster's spot pools share one market: times with and without
/// capacity take turns, each exponential, from the mean share of both at the start. A node asked
/// for in a shortage comes when it is over, and its usual delay later. Nodes that are there stay:
/// ReclaimRules says when those are reclaimed.
struct ShortageRules {
  bool on = false;
  Fact<Seconds> every, lasts;  // means: from the end of one to the begin of the next; of one
};
struct MaintenanceRules {
  bool on = false;
  Fact<Seconds> every;  // mean time between two events of one node
  Seconds notice{};
  Fact<Seconds> duration;  // the VM is away
  bool grouped = false;    // all nodes of a pool at the same time
};
struct FailureRules {
  bool on = false;
  Fact<Seconds> mtbf_per_accelerator;
  Fact<Seconds> repair;  // detection, node repair and pod replacement
  /// Failures in which nothing ends: the gang waits in a collective until a timeout finds it out.
  Fact<double> hang_share;
  Fact<Seconds> hang_detection;
  Fact<double> process_share;    // failures that end a process and leave its node
  Fact<double> straggler_share;  // of a step's time, waited for slow nodes; whether `on` or not
};

/// Electrical power of a run: docs/models/forecast.md. Shares are of an accelerator's printed
/// power.
struct PowerRules {
  Fact<double> busy_share, idle_share;        // while a step computes; all other time
  Fact<double> watts_per_vcpu, watts_per_gb;  // of the host and its memory
  Fact<double> pue;  // factor: all power of the data centre over the machines'
  std::optional<Fact<double>> grams_per_kwh;  // CO2 of the region's grid; nullopt: not known
};

/// Nodes that are rented, where, at which prices and under whose rules: of a training and of a
/// served model alike.
struct PlannedCluster {
  Provider provider;
  ServiceRules service;
  std::string region, zone;
  std::vector<PlannedPool> pools;
  AutoscalerRules autoscaler;
  // What scales the pools, where it is not the cluster-autoscaler with fallback pools; at most one.
  std::optional<ClusterAutoscalerSpec> cluster_autoscaler;  // with expanders
  std::optional<KarpenterSpec> karpenter;
  std::optional<NodeAutoProvisioningSpec> node_auto_provisioning;
  std::optional<SlurmPowerSpec> slurm;
  /// Day and time of the cluster's first second, for schedules; nullopt: not known.
  std::optional<std::chrono::sys_seconds> begins;
  RetryRules retry;
  BillingRules billing;
  JobStartRules job_start;
  FrameworkRules framework;
  PlannedFabric fabric;
  ReclaimRules reclaim;
  ShortageRules shortage;
  MaintenanceRules maintenance;
  FailureRules failures;
  PowerRules power;
  HourlyRate storage_per_gb;  // checkpoints kept; 0 where unknown
  EgressRules egress;

  /// The first that is no fallback; nullptr: none. worker falls back to chief's.
  const PlannedPool* pool_with(Role role) const;
  /// Its autoscaler chooses among a pool and its fallback pools; else those take its pods only
  /// while its own nodes do not come.
  bool chooses_pools() const { return cluster_autoscaler || karpenter || node_auto_provisioning; }
};

}  // namespace reckon
