#pragma once
#include "sim/scenario/layout.h"
#include "sim/step/element_sizes.h"
#include "sim/step/memory/folded_model.h"
#include "sim/step/step.h"

// Memory of one accelerator under a layout (docs/MODELS.md, "Layouts").
namespace reckon {

/// What one rank keeps of a block class, before ZeRO and for one sample.
struct BlockState {
  double parameters = 0, trainable = 0;  // numbers of weights, shared by all but the experts
  double expert_parameters = 0, expert_trainable = 0;  // likewise of the experts alone
  double tied = 0;               // numbers of weights of another block that this one needs
  double largest_trainable = 0;  // numbers of weights of one layer that is no expert's
  Bytes saved{};                 // for the backward pass, with the layout's recomputation
  Bytes all{};                   // the same without recomputation
  Bytes redone{};                // what a block, or its attention, saves while it is computed again
  double working_elements = 0;   // numbers, of the largest layer
};
std::vector<BlockState> block_states(const FoldedModel& model, const Layout& layout,
                                     const ElementSizes& size, double expert_imbalance);

/// Parts of the network that a stage holds, and for how many micro-batches at once each keeps its
/// activations.
///  - gpipe: all of them. 1f1b: stage s of p holds p - s.
///  - interleaved, v parts a stage: 2 (p - s - 1) + (v - 1) p + 1 passes are under way when the
///    first backward pass begins [Narayanan et al. 2021, Sec. 2.2; Megatron-LM schedules.py], p to
///    each part in turn; on the first stage p v + p - 1, so that it keeps
///    L (1 + (p - 1) / (p v)) layers' worth [Korthikanti et al. 2022, Sec. 5].
std::int64_t passes_in_flight(const Layout& layout, int stage, int part);

/// Kinds of ranks that talk to each other: each has a communicator with buffers of its own.
int communicators(const Layout& layout);

/// The stage that needs most, whatever the strategy: one that keeps the model whole has a layout of
/// one stage without shards. Shards: N = data x context ranks (experts: N / expert).
///   parameters  P w, zero_stage 3: / N
///   gradients   P g, zero_stage 2 or 3: / N
///   optimizer   P (master + state), zero_stage 1, 2 or 3: / N; offloaded: 0
///   activations sum over parts of micro_batch x passes in flight x saved.
///               selective recomputation: attention again from its inputs [Korthikanti et al. 2022,
///               "Reducing activation recomputation in large transformer models", Sec. 5]; of the
///               graph's fused one only its statistics go.
///               full: the blocks' inputs, and once what the block saves that is computed again
///               [the same, Sec. 4]; a block that saves less than its input is kept as it is, and
///               so is all of a stage that would hold more with recomputation than without.
///               Attention without a fused kernel keeps its scores besides, at `score` bytes each,
///               once where it is computed again.
///   gathered    zero_stage 3: the parameters of the block in work and of the next one, prefetched;
///               zero_stage 2 or 3: the gradients of one block before they are scattered
///               [Zhao et al. 2023, "PyTorch FSDP", VLDB 16(12), Sec. 3.3 and 4.1]
///   workspace   gradients of the largest layer's input and output
MemoryEstimate memory_of(const FoldedModel& model, const Layout& layout, const ElementSizes& size,
                         double expert_imbalance);
/// The same with the layout's block_states().
MemoryEstimate memory_of(const FoldedModel& model, const Layout& layout, const ElementSizes& size,
                         std::span<const BlockState> blocks);
/// estimate_memory() of a job whose model was folded before, and cut as the job's stages are.
MemoryEstimate estimate_memory(const Plan& plan, const PlannedWorkload& job,
                               const FoldedModel& folded);
/// Of each stage.
std::vector<MemoryEstimate> memory_of_stages(const FoldedModel& model, const Layout& layout,
                                             const ElementSizes& size, double expert_imbalance);

}  // namespace reckon
