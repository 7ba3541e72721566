#pragma once
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/comm/zero_exchange.h"
#include "executor/train/layouts/pipeline/stage_compute.h"
#include "executor/train/step_runtime.h"
#include "sim/scenario/layout.h"

// A stage of a pipeline, in the forecast's order of passes (sim/step/pipeline_passes.h).
namespace reckon {

/// The ranks of one pipeline, by stage: for what goes with the network's order, and against it.
struct PipelinePeers {
  Communicator& onward;
  Communicator& back;
};

/// Runs whole steps (run_passes) of stage onward.rank(). A micro-batch that is under way has memory
/// of its own, so a stage keeps most_in_flight() of them (sim/step/pipeline_passes.h).
/// Activations and gradients are sent while the next pass is at work.
///
/// A weight to which layers of other stages are tied belongs to one stage: the others have copies
/// of it, send their gradients there at a step's end, and are sent its value at the next one's
/// begin.
///
/// With layout.zero_stage 2 and 3 gradients leave behind every pass; those of a block with a weight
/// that other stages have copies of, behind the last one. With 3 `gathers` is the exchange: a
/// pass' blocks come each a block ahead and go after their last use in it.
///
/// `compute`: of the parameters of stage onward.rank() (PipelineStages::parameters). `options`:
/// batch (of a micro-batch), recompute, seed. All arguments must outlive it.
std::unique_ptr<StepRuntime> make_pipeline_runtime(const ModelGraph& model,
                                                   const RuntimeOptions& options,
                                                   const Layout& layout, PipelinePeers peers,
                                                   std::unique_ptr<StageCompute> compute,
                                                   ZeroExchange* gathers = nullptr);

}  // namespace reckon
