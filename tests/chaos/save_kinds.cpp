#include "chaos/save_kinds.h"

#include <fmt/format.h>

namespace reckon::test {
namespace {

constexpr const char* kGpt =
    "{transformer: {layers: 2, hidden: 32, heads: 4, vocabulary: 64, sequence_length: 16, "
    "positions: 16, tied_output: true}}";
constexpr const char* kMixture =
    "{transformer: {layers: 2, hidden: 32, heads: 4, vocabulary: 64, sequence_length: 16, "
    "gated_feed_forward: true, rms_norm: true, experts: 4, experts_per_token: 2}}";

struct LayoutCase {
  std::string name, strategy;
  int ranks = 2;
  const char* model = kGpt;
  bool whole = false;  // each rank holds all of the state
};
std::vector<LayoutCase> layout_cases() {
  return {
      {.name = "data 2", .strategy = "{kind: multi_worker_mirrored, workers: 2}", .whole = true},
      {.name = "ZeRO 1", .strategy = "{kind: sharded, workers: 2, zero_stage: 1}"},
      {.name = "ZeRO 3", .strategy = "{kind: sharded, workers: 2, zero_stage: 3}"},
      {.name = "tensor 2", .strategy = "{kind: model_parallel, tensor: 2, micro_batch: 4}"},
      {.name = "pipeline 2",
       .strategy = "{kind: model_parallel, pipeline: 2, micro_batch: 2, schedule: 1f1b}"},
      {.name = "context 2", .strategy = "{kind: model_parallel, context: 2, micro_batch: 4}"},
      {.name = "expert 2",
       .strategy = "{kind: model_parallel, data: 2, expert: 2, micro_batch: 4}",
       .model = kMixture},
      {.name = "data 2 x tensor 2",
       .strategy = "{kind: model_parallel, data: 2, tensor: 2, zero_stage: 1, micro_batch: 4}",
       .ranks = 4}};
}

struct SavePolicy {
  std::string name;
  bool in_place = false;
  std::optional<NodeTier> nodes = std::nullopt;
};
std::vector<SavePolicy> save_policies() {
  return {{.name = "storage"},
          {.name = "storage, in place", .in_place = true},
          {.name = "disks", .nodes = NodeTier{LocalTier::local_disk, 1}},
          {.name = "disks and copies, in place",
           .in_place = true,
           .nodes = NodeTier{LocalTier::local_disk, 2}},
          {.name = "memory and copies", .nodes = NodeTier{LocalTier::peer_memory, 2}}};
}

/// Where the nodes save as often as they can the storage gets every eighth or so of it.
TrainingKind kind_of(const LayoutCase& layout, const SavePolicy& policy) {
  constexpr int kSteps = 150, kOften = 5, kSeldom = 25;
  const std::string local =
      policy.nodes ? fmt::format("interval: 1h, local: {{to: {}, every: 10ms, replicas: {}}}",
                                 to_text(policy.nodes->to), policy.nodes->replicas)
                   : "interval: none";
  return {.name = layout.name + ": " + policy.name,
          .scenario = fmt::format(
              "name: kills\nworkload:\n  model: {}\n"
              "  dataset: {{samples: 4096, bytes_per_sample: 32B}}\n"
              "  train: {{steps: {}}}\n  precision: fp32\n  global_batch: 8\n  strategy: {}\n"
              "  optimizer: {{kind: sgd, learning_rate: 0.01, momentum: 0.9}}\n"
              "  restart: {{kind: {}}}\n  checkpoint: {{{}}}\n"
              "cluster:\n  provider: on_premises\n  pools:\n"
              "    - {{name: here, machine: {{vcpu: 1, memory: 2GiB, network: 10Gbps}}, "
              "nodes: {}}}\n",
              layout.model, kSteps, layout.strategy, policy.in_place ? "in_place" : "full", local,
              layout.ranks),
          .workers = layout.ranks,
          .steps = kSteps,
          .keeps_state = layout.whole && policy.in_place,
          .checkpoint_steps = policy.nodes ? kSeldom : kOften,
          .nodes = policy.nodes,
          .hang = Seconds{30}};
}

}  // namespace

std::vector<SaveKind> save_kinds() {
  const std::vector<LayoutCase> layouts = layout_cases();
  const std::vector<SavePolicy> policies = save_policies();
  std::vector<SaveKind> kinds;
  for (std::size_t turn = 0; turn < policies.size(); ++turn)
    for (std::size_t k = 0; k < layouts.size(); ++k)
      kinds.push_back(
          {layouts[k].name, kind_of(layouts[k], policies[(k + turn) % policies.size()])});
  return kinds;
}

}  // namespace reckon::test
