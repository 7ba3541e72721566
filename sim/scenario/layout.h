#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/sharding.h"
#include "sim/scenario/plan.h"

// How a model lies on accelerators: every product of data, ZeRO, tensor, sequence, context,
// pipeline and expert parallelism is one Layout.
namespace reckon {

struct Layout {
  int data = 1;         // copies of the model that work on samples of their own
  int tensor = 1;       // ranks that share each matrix [Shoeybi et al. 2019]
  int pipeline = 1;     // stages, each with a part of the layers
  int context = 1;      // ranks that share each sequence's tokens
  int expert = 1;       // of the data ranks, so many share the experts out
  int zero_stage = 0;   // sharded over data x context: 1 optimizer state, 2 gradients too, 3
                        // parameters too [Rajbhandari et al. 2020]
  int micro_batch = 1;  // samples of one copy in one pass
  std::int64_t micro_batches = 1;  // passes of one copy in a step
  bool sequence_parallel = false;  // tokens of what is whole are shared by the tensor ranks
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int interleave = 1;              // parts of the network in one stage
  bool offload_optimizer = false;  // its state and update are the host's
  /// Else waited for: gradients (zero_stage 0 and 1), sequence parallelism, interleaved stages.
  bool overlap = true;
  Recompute recompute = Recompute::none;
  /// A block is computed again only up to the last tensor that its backward pass needs, so not its
  /// last matrix product: PyTorch's non-reentrant checkpointing (torch/utils/checkpoint.py, "early
  /// stop", the default since 2.1), with which FSDP's blocks are wrapped. Megatron-LM's runs all.
  bool stops_recomputing = false;

  std::int64_t accelerators() const { return std::int64_t{data} * tensor * pipeline * context; }
  /// Ranks that hold the same part of the model, and so share its gradients.
  int replicas_of_state() const { return data * context; }
  std::int64_t global_batch() const { return micro_batches * micro_batch * data; }
};
/// Of a job without parameter servers.
Layout layout_of(const PlannedWorkload& job);

/// What a network lets itself be divided into; made once for each model.
struct LayoutLimits {
  explicit LayoutLimits(const ModelGraph& model);
  std::string model;
  ShardedWidths widths;
  std::vector<std::int64_t> experts;  // numbers of experts that its mixtures have
  int blocks = 0;                     // groups of layers with weights; of a transformer its blocks
  std::int64_t sequence_length = 1;
  bool attention = false;
};

/// A rule that a layout breaks. `key`: of workload.strategy, or "global_batch".
struct BrokenRule {
  std::string key, what, hint;
};
/// All of them; empty: the layout can exist. `global_batch`: what all copies have to share out;
/// `accelerators`: what the degrees have to fill.
std::vector<BrokenRule> broken_rules(const LayoutLimits& limits, const Layout& layout,
                                     int accelerators, std::int64_t global_batch);
/// Layouts that can exist and are rarely meant: sentences.
std::vector<std::string> doubtful_choices(const Layout& layout, int accelerators_per_node);

}  // namespace reckon
