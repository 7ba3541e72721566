#pragma once
#include <memory>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/train/step_runtime.h"
#include "sim/scenario/layout.h"

// A stage of a pipeline on CPUs. Stages are cut and ordered by the forecast's functions
// (FoldedModel::partition, passes_of_stage).
namespace reckon {

/// Which layers each stage has: its `interleave` parts, in their order.
struct PipelineStages {
  PipelineStages(const ModelGraph& model, const Layout& layout);
  std::vector<std::vector<LayerSpan>> parts;  // by stage
  int stage_of(std::size_t layer) const;
  /// Of a rank's parameters the stage's, and copies of those of other stages that its layers are
  /// tied to.
  ParameterLayout parameters(const ModelGraph& model, const ParameterLayout& all, int stage) const;
};

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
/// `options`: batch (of a micro-batch), recompute, seed. All arguments must outlive it.
std::unique_ptr<StepRuntime> make_pipeline_runtime(const ModelGraph& model,
                                                   const RuntimeOptions& options,
                                                   const Layout& layout, PipelinePeers peers,
                                                   Workers& workers);

}  // namespace reckon
