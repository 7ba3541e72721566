#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/shared.h"
#include "exchange/kubernetes/kubernetes.h"

// What the commands that know Kubernetes read alike from the command line.
namespace reckon::cli {

/// Where processes are.
enum class RunPlace { local, kubernetes };
constexpr auto words_of(RunPlace) {
  return std::array{Word<RunPlace>{"local", RunPlace::local},
                    Word<RunPlace>{"kubernetes", RunPlace::kubernetes}};
}
Option on_option(std::optional<RunPlace>& place);

/// Objects of a cluster that pods use; names are judged as Kubernetes does. "": not given.
struct KubernetesObjects : KubectlChoice {
  std::string image, pull_secret, bucket, claim, storage_class, store_secret, node_directory;
  Option image_option();
  Option pull_secret_option();
  Option bucket_option();
  Option claim_option();
  Option storage_class_option();
  Option store_secret_option();
  Option node_directory_option();
  Option space_option();  // --namespace, judged
};
Option pending_option(std::optional<Seconds>& deadline);

/// Throws UsageError where the objects contradict each other.
KubernetesExport kubernetes_options(const KubernetesObjects& objects);

/// Throws UsageError unless it is a name of a run, as `kubernetes_name()` makes them.
void refuse_unless_run_name(const std::string& run);

}  // namespace reckon::cli
