#pragma once
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// What Google calls a GPU: "nvidia-tesla-p100"; ours where the catalog has no alias of that form.
std::string cloud_name_of(const Accelerator& accelerator);

/// The commands that make a plan's cluster on GKE: the cluster, then each of its node pools, with
/// accelerators, autoscaling bounds and spot as planned, TPU slices with their topology. Every word
/// that a user wrote is one word of the shell (shell_word()). A plan of another service is a
/// mistake at `cluster.service`.
Expected<std::string> gcloud_commands(const ScenarioFile& file, const Plan& plan);

}  // namespace reckon
