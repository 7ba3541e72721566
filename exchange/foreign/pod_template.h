#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exchange/foreign/foreign_file.h"
#include "exchange/foreign/imported.h"

// What a template of Kubernetes pods says of the nodes that they need.
namespace reckon {

/// By the labels that it selects its nodes by.
struct NodeWish {
  std::optional<Provider> provider;
  std::string machine, accelerator, region, zone, pool, topology;
  int per_node = 0;  // accelerators of a node; 0: no label says it
  bool spot = false;
};

struct PodWish {
  ImportedContainer container;
  NodeWish node;
  int devices = 0;                      // accelerators of a pod, all containers together
  bool tpu = false;                     // they are chips of a TPU
  double cores = 0, memory_bytes = 0;   // that all containers ask for; 0: they do not say
  std::string unknown_accelerator;      // a label's value that the catalog does not know
  std::vector<std::string> referenced;  // variables whose values are in secrets or the pod's fields
  SourcePlace at;
};

/// Of the pod's containers the one that asks for devices, else the first.
PodWish read_pod_template(ForeignFile& file, const YamlNode* pod_template, const Catalog& catalog);

}  // namespace reckon
