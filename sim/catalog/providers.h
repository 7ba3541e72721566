#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/words.h"

// Whose machines, and under whose rules: names in scenarios and plans, what they stand for in
// catalogs/providers.yaml and catalogs/services.yaml. Code asks for what a provider or a service
// does, never for which one it is.
namespace reckon {

/// The name of a provider, as catalogs and scenarios write it: "gcp".
struct Provider {
  std::string name;
  friend auto operator<=>(const Provider&, const Provider&) = default;
};
/// The name of a service: "gke". "none" is machines without one: one's own, or VMs that the user
/// runs.
struct Service {
  std::string name;
  friend auto operator<=>(const Service&, const Service&) = default;
};
inline std::string_view to_text(const Provider& provider) { return provider.name; }
inline std::string_view to_text(const Service& service) { return service.name; }

/// What a provider is and does. Its numbers (time to get a node, notice of a reclaim, maintenance,
/// billing) are OperationalDefaults, by the keys of sim/catalog/operations_keys.h.
struct ProviderRules {
  Provider id;
  std::string called;  // as a sentence names it: "Google Cloud"
  int rank = 0;        // place in lists, and in what is tried one after the other; least first
  std::vector<Service> services;  // the first applies where a scenario names none
  /// Machines of one's own: no regions, no list prices, the owner's rules of maintenance and of
  /// taking nodes back.
  bool owned = false;
  bool locations_complete = false;  // what the catalog's locations do not list is not offered
  bool counts_by_table = false;     // GPUs are attached in the counts of attachments.csv, no others
  bool sells_spot = true;           // false: its spot capacity is not simulated
  std::string node_id;   // how its nodes' spec.providerID begins, without "://"; "": not known
  std::string tcp_link;  // LinkClass of its networks without RDMA
  std::string region;    // where a file of others names none; "": there is no such
  std::string worker_machine, server_machine;  // the same of machines; "" likewise
};

/// Which pools of a service grow and shrink.
enum class Scales { nothing, pools_of_cpus, all_pools };
constexpr auto words_of(Scales) {
  return std::array{Word<Scales>{"nothing", Scales::nothing},
                    Word<Scales>{"pools_of_cpus", Scales::pools_of_cpus},
                    Word<Scales>{"all_pools", Scales::all_pools}};
}

struct ServiceRules {
  Service id;
  std::string called;       // as a sentence names it: "AI Platform"
  bool kubernetes = false;  // Kubernetes runs the nodes: its autoscaler, its Job's retries
  Scales scales = Scales::nothing;
  /// Every job gets machines of its own, of the service's own types, for as long as it runs.
  bool nodes_of_job = false;
  bool one_zone = false;  // all accelerators of a job are in one zone
  bool spot_machines = true, spot_slices = true;
  std::string prices_of;     // whose list prices apply, where the catalog has none of its own
  std::string cluster_tool;  // the target of `reckon export` that makes its clusters; "": none does
  /// Karpenter scales its nodes: how the labels of its machines begin ("karpenter.k8s.aws"); "": it
  /// does not.
  std::string karpenter_labels;
  /// Its pools may be of flex-start nodes; it makes node pools by ComputeClasses, and knows prices
  /// of nodes when it scales.
  bool flex_start = false, compute_classes = false, price_expander = false;
  bool slurm = false;       // Slurm may power its machines on and off
  std::string name_server;  // address of a name server outside of the cluster, as CIDR; "": none
  std::string bucket_driver, bucket_annotation;  // CSI driver of buckets; "": cannot be mounted
};

}  // namespace reckon
