#pragma once
#include <cstdint>

#include "sim/scenario/spec/words.h"

// How a job lies on accelerators: every product of data, ZeRO, tensor, sequence, context, pipeline
// and expert parallelism is one Layout. sim/scenario/layout_rules.h says which can exist.
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

  /// Accelerators that hold one copy of the model and compute it together.
  std::int64_t replica() const { return std::int64_t{tensor} * pipeline * context; }
  std::int64_t accelerators() const { return data * replica(); }
  /// Ranks that hold the same part of the model, and so share its gradients.
  int replicas_of_state() const { return data * context; }
  /// Every rank holds all of the model and of its state.
  bool whole() const { return replica() == 1 && expert == 1 && zero_stage == 0; }
  std::int64_t global_batch() const { return micro_batches * micro_batch * data; }
};

}  // namespace reckon
