#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "exchange/foreign/pod_template.h"
#include "sim/scenario/scenario.h"

namespace reckon {

/// Pods of one kind, as a manifest asks for them.
struct Replicas {
  std::string name;
  Role role = Role::worker;
  int pods = 1;
  PodWish pod;
};

struct ReplicasOfJob {
  std::string name;  // of the first document with a job
  std::vector<Replicas> replicas;
  std::vector<std::string> left_out;  // settings of the jobs that nobody asked for
  std::vector<std::string> others;    // documents that are no jobs
};

/// The ranks of the one job that a file of manifests is of: Jobs, a JobSet, a TFJob, a PyTorchJob,
/// a TrainingRuntime, and StatefulSets of parameter servers; or a List of such, as kubectl prints
/// it.
Expected<ReplicasOfJob> replicas_of_manifests(std::string_view text, const std::string& file,
                                              const Catalog& catalog);

}  // namespace reckon
