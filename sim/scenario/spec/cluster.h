#pragma once
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/catalog.h"
#include "sim/scenario/spec/autoscalers.h"
#include "sim/scenario/spec/karpenter.h"
#include "sim/scenario/spec/scheduler.h"
#include "sim/scenario/spec/words.h"

// What it runs on: `cluster` of a scenario.
namespace reckon {

struct MachineByName {
  std::string name;
};
struct MachineInline {
  int vcpus = 0;
  Bytes memory{};
  BytesPerSecond network{};
  // What it costs: a rate, or what was paid for it over the time it is written off, with the power
  // it draws at a tariff; or nothing, which is unknown.
  std::optional<MoneyText> price, purchase;
  std::optional<Seconds> amortised_over;
  double power_watts = 0;
  std::optional<MoneyText> tariff;  // of a joule
  /// Names of the catalog's links: of `network`, and between accelerators of one node; "":
  /// ethernet, and what the accelerator has.
  std::string network_link, peer_link;
};
using MachineSpec = std::variant<std::monostate, MachineByName, MachineInline>;

/// GPUs that are cut into devices, each of which one job has: MIG instances, or replicas that take
/// turns.
struct SharedGpuSpec {
  std::string resource;  // "nvidia.com/mig-1g.10gb": what jobs ask for
  int devices = 1;       // of a GPU
};
struct AcceleratorSpec {
  std::string type;
  int count = 1;
  // Of jobs that share a cluster: each GPU is cut into devices, all alike or by MIG profiles.
  std::optional<SharedGpuSpec> shared{};
  std::map<std::string, int> mig_devices{};  // profile -> instances of a GPU
  bool is_cut() const { return shared || !mig_devices.empty(); }
};
struct TpuSpec {
  std::string type, slice;
};
struct NodesSpec {
  int initial = 1, min = 1, max = 1;
};

struct PoolSpec {
  std::string name;
  std::optional<Role> role;
  MachineSpec machine;
  std::optional<AcceleratorSpec> accelerator;
  std::optional<TpuSpec> tpu;
  NodesSpec nodes;
  bool autoscaling = false;
  CapacityType pricing = CapacityType::on_demand;
  /// Name of the pool whose nodes this one's replace while they cannot be had; "": none.
  std::string fallback_for;
  /// After so long without a node that was asked for; not given: the autoscaler's patience.
  std::optional<Seconds> after;
  ProvisioningModel provisioning = ProvisioningModel::standard;
  std::optional<Seconds> max_run_duration;  // of flex-start: a node ends at that age
  std::optional<Seconds> capacity_wait;     // of flex-start: until there is capacity
};

/// How the nodes are wired. Not given: all nodes are on one switch that is never full.
struct FabricSpec {
  std::optional<int> nics;    // of a node; each accelerator uses the nearest
  std::optional<bool> rails;  // the k-th NIC of all nodes is on a switch of its own
  std::optional<int> nodes_per_leaf;
  std::optional<double> oversubscription;  // factor: bandwidth of a leaf's nodes over its uplinks
  std::optional<bool> in_network_reduction;
};

struct ClusterSpec {
  Provider provider;
  std::optional<Service> service;  // the provider's own
  std::string region, zone;
  std::string scale_tier;       // AI Platform's; the catalog says what pools it is
  std::vector<PoolSpec> pools;  // empty beside a scale_tier, unless that leaves them to the user
  std::optional<FabricSpec> fabric;
  AutoscalerKind autoscaler = AutoscalerKind::cluster_autoscaler;
  // Each counts under its autoscaler.
  std::optional<ClusterAutoscalerSpec> cluster_autoscaler;
  std::optional<KarpenterSpec> karpenter;
  std::optional<NodeAutoProvisioningSpec> node_auto_provisioning;
  std::optional<SlurmPowerSpec> slurm;
  std::optional<SchedulerSpec> scheduler;  // of a trace
};

}  // namespace reckon
