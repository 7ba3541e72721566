#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/words.h"
#include "sim/catalog/catalog.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/plan.h"

// A plan as manifests: what `kubectl apply` needs to run its job on a cluster that has its pools.
namespace reckon {

/// What the workers are: a Job (indexed where the version has it, else one Job a rank), or a
/// resource of an operator that is installed in the cluster. launcher: a Job in which `reckon run`
/// makes them and watches them; its image has reckon and kubectl besides.
enum class JobShape { job, tfjob, pytorchjob, jobset, mpijob, trainjob, launcher };
constexpr auto words_of(JobShape) {
  return std::array{Word<JobShape>{"job", JobShape::job},
                    Word<JobShape>{"tfjob", JobShape::tfjob},
                    Word<JobShape>{"pytorchjob", JobShape::pytorchjob},
                    Word<JobShape>{"jobset", JobShape::jobset},
                    Word<JobShape>{"mpijob", JobShape::mpijob},
                    Word<JobShape>{"trainjob", JobShape::trainjob},
                    Word<JobShape>{"launcher", JobShape::launcher}};
}

/// In a sentence: "a JobSet".
constexpr const char* one_of(JobShape as) {
  switch (as) {
    case JobShape::tfjob:
      return "a TFJob";
    case JobShape::pytorchjob:
      return "a PyTorchJob";
    case JobShape::jobset:
      return "a JobSet";
    case JobShape::mpijob:
      return "an MPIJob";
    case JobShape::trainjob:
      return "a TrainJob";
    default:
      return "a Job";
  }
}

struct KubernetesExport {
  int minor = 31;  // of Kubernetes 1.x
  JobShape as = JobShape::job;
  std::string name_space;                      // "": the job's name
  std::string image = "reckon-worker:latest";  // where the scenario names no container
  std::string bucket;                          // GKE: mounted for checkpoints; "": a claim
  std::string claim;                           // an existing claim; "": one is made
  std::string storage_class;                   // of the claim that is made; "": the cluster's
  int attempt = 1;  // part of all names: DNS records of an earlier try may still be there
  bool make_namespace = true;  // false: it is there, and may not be ours to change
  std::string pull_secret;     // of the namespace, for the image's registry; "": none
  /// Of the namespace: keys to the S3-compatible store that the samples are in, as environment
  /// variables of the pods (kStoreVariables); "": none. The manifests hold its name alone.
  std::string store_secret;
  /// Of the nodes: where pods of reckon-worker keep their checkpoints of workload.checkpoint.local.
  /// It is there, and user 65532 may write to it; "": they keep none there.
  std::string node_directory;
  /// Somebody watches the job and makes the next attempt when one of its pods is lost (`reckon
  /// run`): the cluster starts nothing again, and reckon-worker prints its measurements.
  bool watched = false;
  /// Watched, of reckon-worker: a pod that is lost is made again alone, whatever it ended with; its
  /// processes wait for an order in kOrdersFile, the others keep their pods. The spare nodes of a
  /// warm_spare have pods too, a Job NAME-spare.
  bool standing = false;
  /// Of the Secret that is then among the documents; "": it is made apart, and they name it alone.
  std::string job_secret;
  std::string run_started;  // watched: of the first attempt, 2026-12-04T18:00:00.123Z
  std::vector<std::string>
      arguments;  // of reckon-worker behind the plan: "--checkpoint-steps", "5"
  /// Beside the plan in its ConfigMap, by name: the pods find them in kMountedFiles.
  std::vector<std::pair<std::string, std::string>> files;
};

/// The job's name in a cluster, without the attempt: lower-case letters, digits and hyphens.
std::string kubernetes_name(std::string_view plan);

/// The Secret that pods of a job's several processes of reckon-worker mount, and the key that it is
/// under; not part of the manifests, which anybody may read.
std::string kubernetes_secret_name(std::string_view run);
/// What a pod's reckon-worker reads, and its key in the ConfigMap.
inline constexpr const char* kMountedPlan = "/plan/plan.reckon";
inline constexpr const char* kMountedFiles = "/plan";
/// What a standing pod reads its orders from: its annotation kPodStartAnnotation.
inline constexpr const char* kOrdersFile = "/orders/start";
inline constexpr const char* kPodStartAnnotation = "reckon/start";
inline constexpr const char* kPlanKey = "plan.reckon";
inline constexpr const char* kKubernetesSecretKey = "job.secret";
/// Keys of KubernetesExport::store_secret, by the names of Amazon's tools: what it must have, and
/// what it may have.
inline constexpr std::array<std::pair<const char*, bool>, 4> kStoreVariables{
    {{"AWS_ACCESS_KEY_ID", true},
     {"AWS_SECRET_ACCESS_KEY", true},
     {"AWS_SESSION_TOKEN", false},
     {"AWS_REGION", false}}};
/// Whether the plan's pods want one: a program of one's own does not know it.
bool needs_kubernetes_secret(const RunArtifact& artifact);

/// A plan as pods get it: what they call things is in it, and nothing of the machine that it was
/// planned on; of our own program as it runs it (sim/scenario/own_program.h).
RunArtifact for_cluster(RunArtifact planned, const Catalog& catalog);

/// Namespace, service account, configuration, claim, headless service, network policy and the job,
/// as YAML documents in the order in which they are to be applied. The same plan gives the same
/// text. The configuration holds the artifact, which pods read, and its scenario, for people.
/// Mistakes: what the version, the shape or the plan cannot be brought together, all at once, at
/// their place in the scenario (`places`).
Expected<std::string> kubernetes_manifests(const RunArtifact& artifact,
                                           const KubernetesExport& options,
                                           const Places& places = {});

/// What a node of the machine leaves for pods. The reservations are those of GKE and (CPU) AKS,
/// from kubernetes/autoscaler cluster-autoscaler/cloudprovider/gce/reserved.go: of CPU 6 % of the
/// first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the others; of memory 255 MiB
/// below 1 GiB, else 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the
/// next 112, 2 % of the rest; and 100 MiB for evictions. Other services reserve less.
struct Allocatable {
  std::int64_t cpu_milli = 0;
  Bytes memory{};
};
Allocatable allocatable_of(const Machine& machine);

}  // namespace reckon
