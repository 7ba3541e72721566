#pragma once
#include <vector>

#include "sim/step/block_times.h"
#include "sim/step/memory/layout_memory.h"
#include "sim/step/network/collective_cost.h"
#include "sim/step/network/collectives_cpu.h"

// Blocks summed up to pipeline stages, and what ZeRO and the gradients' reduction add to them.
namespace reckon {

/// A micro-batch on one stage, all its parts.
struct StageTime {
  BlockTime pass;                                 // summed over the stage's blocks
  Seconds gathers_forward{}, gathers_backward{};  // zero_stage 3: waiting for parameters
  Seconds scatters{};   // zero_stage 2 and 3: waiting for the reduction of a pass' gradients
  Seconds transfers{};  // to and from the neighbouring stages, where the stage waits for them
  Seconds transfer{};   // one of them, waited for or not
  // Once a step:
  Seconds reduction{};      // of the gradients: what goes on after the last backward pass
  Seconds collection{};     // zero_stage 1 and 2: the updated parameters
  double trainable = 0;     // numbers of weights that this rank updates
  Seconds state_traffic{};  // all collectives of ZeRO and gradients of a step, hidden or not
  Bytes state_sent{};       // of a step

  Seconds forward() const { return pass.whole_forward() + gathers_forward; }
  Seconds backward() const { return pass.whole_backward() + gathers_backward + scatters; }
  Seconds whole() const { return forward() + backward() + transfers; }
};

template <class Cost>
struct StageModel {
  const FoldedModel& model;
  const Layout& layout;
  const RankGroups& groups;
  const ElementSizes& size;
  const GradientSum& sum;
  const Processor& core;
  const Cost& cost;
  bool sends_beside = false;  // the stage goes on while it sends (sim/step/pipeline_span.h)
};

/// Where the host takes longer to issue a micro-batch than the stage to run it (host_time), its
/// passes are as much longer.
///
/// Parameters and gradients that move between ranks with the same part of the model:
///  - zero_stage 0: all-reduces of the gradients in buckets that fill in the order of the backward
///    pass, 1: a reduce-scatter a block, both behind the backward pass of the last micro-batch, or
///    without overlap after it; 1 and 2 then gather the updated parameters.
///  - 2 and 3: a reduce-scatter in every micro-batch, because no rank keeps whole gradients.
///  - 3: every block's parameters are gathered before its forward and again before its backward
///    pass, each while the block before is at work; in the backward pass the reduce-scatter of
///    the block behind shares the links [Rajbhandari et al. 2020, Sec. 7.2; Zhao et al. 2023, Sec.
///    3.3]: waiting is the first gather, and max(0, gather + scatter - arithmetic) of each block.
StageTime stage_time(const StageModel<ClosedForms>& m, std::span<const BlockTime> times,
                     std::span<const BlockState> states, int stage);
StageTime stage_time(const StageModel<CollectiveCost>& m, std::span<const BlockTime> times,
                     std::span<const BlockState> states, int stage);

}  // namespace reckon
