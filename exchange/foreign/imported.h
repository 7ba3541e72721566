#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/catalog/catalog.h"
#include "sim/scenario/scenario.h"

// What a file of others says of a cluster and its job, in the words of a scenario, and the
// commented scenario that is written of it.
namespace reckon {

struct ImportedPool {
  std::string name;
  Role role = Role::worker;
  std::string machine;      // "": a slice
  std::string inventory;    // what a machine that the catalog does not know has: "vcpu: 8, ..."
  std::string accelerator;  // as written there; "": none, or built in
  int per_node = 0;         // of them
  std::string slice;        // "v2-8"
  NodesSpec nodes;
  bool autoscaling = false;
  bool spot = false;
  std::string note;  // stands behind the machine, as a comment
  SourcePlace at;    // where the file speaks of it
};

struct ImportedContainer {
  std::string image;
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
};

struct Imported {
  std::string from;  // "config.yaml": the file, for its reader
  std::string kind;  // "ai-platform": behind `reckon import`
  std::string name;  // as the file has it; "": none
  Provider provider;
  std::optional<Service> service;  // nullopt: the provider's own
  std::string region, zone;
  std::string scale_tier;  // then without pools
  std::vector<ImportedPool> pools;
  std::optional<ImportedContainer> container;
  std::optional<std::string> strategy;  // "{kind: single}"; nullopt: what follows from the pools
  std::vector<std::string> expectations;
  std::vector<std::string> assumed;   // sentences: what the file does not say
  std::vector<std::string> left_out;  // its keys that the scenario has no use for
  std::string kept_as;                // "cluster.ai_platform"; "": left_out is in no other place
  std::string kept;                   // YAML of it
  std::map<std::string, SourcePlace> places;  // of paths of the scenario, in the file
};

/// What is trained, which such files do not say.
struct ImportedWork {
  std::string model, dataset;
  std::string length;                // "epochs: 90"
  std::string precision;             // "bf16"; "": what the accelerators have
  std::optional<int> batch;          // of an accelerator; nullopt: what fits
  std::vector<std::string> assumed;  // sentences: of these, what the user did not say either
};

/// Accelerators of a node, those that its machine has built in too.
int devices_of(const ImportedPool& pool, const Provider& provider, const Catalog& catalog);

/// What TensorFlow's own rules make of such a cluster: a TPU slice is `tpu`; with servers,
/// asynchronous parameter servers (tf.estimator's default); several workers add up gradients; one
/// with several accelerators mirrors; else it is alone.
std::string strategy_of(const std::vector<ImportedPool>& pools, const Provider& provider,
                        const Catalog& catalog);

/// A commented scenario that `reckon simulate` accepts as it is: what the file says, what was
/// assumed beside it, and what it has no use for. Mistakes are those that the scenario would have
/// (an unknown machine, a count that a machine cannot carry), at their place in the file.
Expected<std::string> scenario_of(const Imported& imported, const ImportedWork& work,
                                  const Catalog& catalog);

}  // namespace reckon
