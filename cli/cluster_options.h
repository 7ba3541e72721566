#pragma once
#include <string>

#include "cli/options.h"
#include "exchange/kubernetes.h"

// What the commands that know Kubernetes read alike from the command line.
namespace reckon::cli {

/// Throws UsageError.
KubernetesExport kubernetes_options(const Options& options);

/// What the pods' reckon-worker is told, so that it makes the same plan. Throws UsageError where
/// they could not.
PlanWords plan_words(const std::string& file, const Options& options);

}  // namespace reckon::cli
