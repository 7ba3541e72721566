#pragma once
#include <string>
#include <vector>

#include "cli/options.h"
#include "exchange/kubernetes.h"

// What the commands that know Kubernetes read alike from the command line.
namespace reckon::cli {

/// Throws UsageError.
KubernetesExport kubernetes_options(const Options& options);

/// The option's value, which names an object of Kubernetes [RFC 1123, "subdomain"]: no option of
/// kubectl, and one word. "": not given. Throws UsageError for what is no such name.
std::string object_name(const Options& options, const char* option);
/// The same of the name of a run, as `kubernetes_name()` makes them.
void refuse_unless_run_name(const std::string& run);

/// What the pods' reckon-worker is told behind the plan.
std::vector<std::string> worker_words(const Options& options);

}  // namespace reckon::cli
