#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/plan.h"
#include "sim/step/step.h"

// What a network is by itself, before any cluster: where its parameters, FLOPs and activations are,
// and what one accelerator must hold under each way to train it.
namespace reckon {

/// Equal groups of layers in a row (the blocks of a transformer) are one entry. All numbers are
/// those of all of its groups, of one sample.
struct LayerGroupCount {
  std::string name;  // "layer1"; of several groups the first and the last: "h.0 .. h.11"
  int groups = 1;
  int layers = 0;  // of one group
  std::int64_t parameters = 0, trainable = 0;
  Flops forward{}, backward{};
  Bytes saved{};  // kept for the backward pass
};
/// In the order of the network.
std::vector<LayerGroupCount> layer_group_counts(const ModelGraph& model, Bytes per_element);

/// A way to train, and what it makes one accelerator hold. `required` is memory.required().
struct MemoryCase {
  std::string strategy;
  MemoryEstimate memory;
};

struct MemoryQuestion {
  const ModelGraph* model = nullptr;
  Precision precision = Precision::bf16;
  Optimizer optimizer = Optimizer::adamw;
  int batch_per_accelerator = 1;
  int accelerators = 8;      // that share the state or the model, where a strategy has them do so
  FrameworkRules framework;  // the catalog's, as in Plan
  /// nullopt: one device with a single core, of unlimited memory.
  std::optional<Accelerator> accelerator;
};
/// Every strategy that estimate_memory() distinguishes and the model can be split into, with
/// and without recomputation. TPUs have their own one.
std::vector<MemoryCase> memory_by_strategy(const MemoryQuestion& question);

}  // namespace reckon
