#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "exchange/kubernetes/kubernetes.h"
#include "sim/scenario/resolve/container_metrics.h"

// Inside exchange: one kind of pod of a plan's job.
namespace reckon::kubernetes {

using Json = nlohmann::ordered_json;

/// Pods that differ in their number alone: workers, the chief where its pool is another, servers.
struct PodGroup {
  Role role = Role::worker;
  const PlannedPool* pool = nullptr;
  int count = 1;
  int first_rank = 0;  // of all workers, then all servers
  int per_node = 1;    // pods of the job that one node of the pool holds
  int devices = 0;     // accelerators of a pod (legacy TPU: cores)
  /// Cloud TPUs of GKE before they were nodes (v2 and v3): cores that the pod asks for, on whatever
  /// node it runs.
  bool tpu_by_cores = false;
  std::string resource;  // what they are asked for by; "": none
  /// Workers without a rank, which wait for an order that gives them one: spares of a watched job.
  bool stands_by = false;
};

/// Names that are the same in every Kubernetes (ClusterNames::name).
inline constexpr std::string_view kAnyCluster = "kubernetes";

/// What all parts of the export need, worked out once.
struct Job {
  const RunArtifact* artifact = nullptr;  // nullptr: of a service
  const Plan* plan = nullptr;             // the same
  const PlannedCluster* cluster = nullptr;
  std::span<const ClusterNames> names;
  bool owned = false;  // nodes of the user's own, without a provider's labels
  const KubernetesExport* options = nullptr;
  const ContainerSpec* container = nullptr;  // the user's own program
  std::string run;                           // "resnet50"
  std::string name;                          // of the attempt: "resnet50-1"
  std::string name_space;
  std::vector<PodGroup> groups;  // workers (chief first), then servers
  bool rank_by_rank = false;     // a Job for each pod instead of an indexed one
  int workers = 0, servers = 0;

  /// A name of the service, else what is the same in every Kubernetes; "": neither has it.
  std::string term(std::string_view key) const;
  /// A name of the service itself.
  std::string own_term(std::string_view key) const;
  std::string claim() const;
  std::string service() const { return name; }
};

std::string group_name(const Job& job, const PodGroup& group);  // "resnet50-1-worker"
/// Of a TrainJob: its replicated job, and the container in it [Kubeflow Trainer v2.3, runtimes].
inline constexpr const char* kTrainerNode = "node";
/// DNS name by which the others reach the pod, without the cluster's domain.
std::string host_of(const Job& job, int rank);
/// Where the user's own program shows its metrics.
std::optional<PrometheusPage> metrics_page(const Job& job);
Json labels_of(const Job& job);
/// Of the claim, or of the bucket: all pods of the job have it at kCheckpoints.
Json checkpoints_volume(const Job& job);
inline constexpr const char* kCheckpoints = "/checkpoints";
/// Where the job's own lie on it.
std::string job_directory(const Job& job);
/// Where a group's pods may run, and what each asks of its node.
struct PodPlace {
  Json selector, tolerations, resources;  // the first two may be empty
  Json affinity;                          // to a pool before its fallback; empty: it has none
};
PodPlace place_of(const Job& job, const PodGroup& group);
/// Of one pod: its part of what the node leaves.
Json resources_of(const PodGroup& group);
/// What a pod is given to save its work: the notice of whoever takes its node away. On whichever of
/// two pools it comes to run, it must not be promised more than its cloud waits.
std::int64_t grace_seconds(const Job& job, const PodGroup& group);
Json pod_security();        // unprivileged
Json container_security();  // and the root file system read-only
/// The pod template of a group; `rank`: of one pod alone, else it is known when the pod starts.
/// `wires`: the variables by which the processes find each other are set here, not by an operator.
Json pod_template(const Job& job, const PodGroup& group, std::optional<int> rank, bool wires);

}  // namespace reckon::kubernetes
