#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "exchange/kubernetes/kubernetes.h"
#include "sim/base/words.h"
#include "sim/scenario/resolve/serving.h"

// A serving plan as manifests: the replicas that were simulated, on a cluster.
namespace reckon {

/// What answers: `reckon-worker serve`, or TensorFlow Serving with a model of the user's own.
enum class ServerKind { reckon, tensorflow_serving };
constexpr auto words_of(ServerKind) {
  return std::array{Word<ServerKind>{"serving", ServerKind::reckon},
                    Word<ServerKind>{"tensorflow-serving", ServerKind::tensorflow_serving}};
}

/// nullopt: such a server uses what the plan's pool has. Else a sentence: our own server computes
/// on CPUs alone, and accelerators would be paid for nothing.
std::optional<std::string> why_not_exported(const ServingPlan& plan, ServerKind kind);

/// Namespace, service account, claim of the models (NAME/1/, NAME/2/ ... below it), Deployment,
/// Service (of the cluster alone, or a LoadBalancer for the scenario's clients),
/// HorizontalPodAutoscaler, network policy and, where replicas are on
/// standby, a Deployment of low priority that keeps nodes and images for them, as YAML documents in
/// the order in which they are to be applied. Of `options`: minor, name_space, make_namespace,
/// image (of reckon's server, or in place of TensorFlow Serving's), claim, bucket, storage_class,
/// pull_secret. The same plan gives the same text.
///
/// The autoscaler goes by the use of CPUs, or of accelerators: dcgm-exporter's
/// DCGM_FI_DEV_GPU_UTIL, which an adapter has to offer as a pods metric. There must be no
/// why_not_exported().
std::string serving_manifests(const ServingPlan& plan, const Catalog& catalog, ServerKind kind,
                              const KubernetesExport& options);

}  // namespace reckon
