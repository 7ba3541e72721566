#pragma once
#include "sim/scenario/layout.h"
#include "sim/step/compute.h"
#include "sim/step/memory/folded_model.h"
#include "sim/step/network/collectives.h"

// Time of one pass of one micro-batch through one block under a layout (docs/MODELS.md,
// "Layouts").
namespace reckon {

/// A job's ranks by what they share, as sim/scenario/rank_places.h lays them out.
struct RankGroups {
  RankGroups(const Fabric& job, const Layout& layout);
  Fabric tensor, context, expert;
  Fabric state;         // data x context: replicas of what is no expert
  Fabric expert_state;  // data x context / expert
  Fabric boundary;      // two ranks of neighbouring stages
};

struct BlockTime {
  Seconds forward{}, backward{};  // arithmetic; recomputation is in the backward pass
  Seconds bound_by_memory{};      // of both
  Seconds waiting_for_host{};     // of a stage: part of forward and backward, see stage_times.h
  // Waiting for others, forward and backward.
  Seconds tensor_forward{}, tensor_backward{};
  Seconds context_forward{}, context_backward{};
  Seconds expert_forward{}, expert_backward{};
  // Kernels and collectives that the host issues, forward and backward; a count.
  double dispatches = 0;
  Seconds hidden{};  // communication behind arithmetic
  Bytes sent{};      // by one rank

  Seconds whole_forward() const {
    return forward + tensor_forward + context_forward + expert_forward;
  }
  Seconds whole_backward() const {
    return backward + tensor_backward + context_backward + expert_backward;
  }
};

/// Collectives of a pass, M the bytes of the whole tensor (tokens / c, micro_batch samples):
///  - tensor [Shoeybi et al. 2019, Sec. 3; with sequence parallelism Korthikanti et al. 2022, Sec.
///    4.2.2]: where whole tensors are taken apart an all-reduce of M in the backward pass (with
///    sequence parallelism an all-gather forward and a reduce-scatter backward; the all-gather for
///    the weights' gradient is hidden behind arithmetic, as there), where split ones are taken
///    together an all-reduce forward (a reduce-scatter forward, an all-gather backward).
///  - context [Liu et al. 2023, "Ring attention", arXiv:2310.01889, Sec. 3]: keys and values go
///    round c - 1 times while attention works on those at hand, backward with their gradients:
///    (c - 1) max(0, x - t / c), x the transfer, t the attention's time.
///  - expert [Lepikhin et al. 2021, "GShard", Sec. 3.2]: an all-to-all to the experts and one back,
///    in each direction.
/// Full recomputation repeats the forward collectives. `Cost`: ClosedForms, CollectiveCost.
template <class Cost>
std::vector<BlockTime> block_times(const FoldedModel& model, const Layout& layout,
                                   const RankGroups& groups, const ElementSizes& size,
                                   const Processor& core, double expert_imbalance,
                                   const Cost& cost);

/// Is a layer of that class computed again in the backward pass? Full: with the others of its
/// block, up to its end or up to the last that it needs (Layout::stops_recomputing).
bool recomputed(const LayerClass& layer, const Layout& layout);

/// Times of each layer class alone, without waiting, recomputation in the backward pass.
std::vector<LayerCost> layer_costs(const FoldedModel& model, const Layout& layout,
                                   const ElementSizes& size, const Processor& core,
                                   double expert_imbalance);

}  // namespace reckon
