#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/fact.h"
#include "sim/catalog/providers.h"

// Facts of the catalog: what services call things, and what they offer under one name.
namespace reckon {

/// A cluster that a managed service offers under one name (AI Platform's scale tiers).
struct ScaleTier {
  struct Part {
    std::string role;  // chief, worker, parameter_server
    std::string machine;
    int count = 1;
    std::string accelerator;  // attached to each; "" none, or built in
    int accelerator_count = 0;
    std::string slice;  // a TPU slice beside it
  };
  Service service;
  std::string name;         // "STANDARD_1"
  std::vector<Part> parts;  // empty: the user names machines and counts (CUSTOM)
  SourceId source{};
};

/// What a Kubernetes service calls things: label keys, taints, resources, values. By dotted key:
/// "labels.accelerator", "taints.gpu", "resources.gpu", "accelerators.T4" (the value of
/// labels.accelerator for it), "api_versions.job".
struct ClusterNames {
  struct Name {
    std::string text;
    SourceId source{};
  };
  std::string name;  // "gke"; "kubernetes" holds what is the same everywhere
  std::map<std::string, Name, std::less<>> names;
  const Name* find(std::string_view key) const;  // nullptr: no such key
};

}  // namespace reckon
