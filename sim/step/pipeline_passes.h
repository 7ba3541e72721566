#pragma once
#include <cstdint>
#include <vector>

#include "sim/scenario/layout.h"

// The order in which a stage of a pipeline takes its passes: what the executor runs
// (executor/train/layouts/pipeline/runtime.h) and what the forecast's bubble
// (sim/step/step_model.h) and its activations (passes_in_flight, sim/step/memory/layout_memory.h)
// come of.
namespace reckon {

struct PipelinePass {
  bool forward = true;
  std::int64_t micro_batch = 0;
  int part = 0;  // of the stage's `interleave` parts of the network, the first one first
  friend bool operator==(const PipelinePass&, const PipelinePass&) = default;
};

/// Forward and backward pass of every micro-batch through every part of the stage. With p stages, m
/// micro-batches, v parts a stage:
///  - gpipe: all forward, then all backward passes [Huang et al. 2019, "GPipe", Sec. 2.3].
///  - 1f1b: p - s - 1 forward passes, then a forward and a backward pass in turn, then what is left
///    of the backward ones [Narayanan et al. 2021, Sec. 2.2.1].
///  - interleaved: p micro-batches through a part, then the same through the next; 2 (p - s - 1) +
///    (v - 1) p forward passes first [Narayanan et al. 2021, Sec. 2.2.2; Megatron-LM schedules.py].
std::vector<PipelinePass> passes_of_stage(const Layout& layout, int stage);

/// Of each part, micro-batches between their forward and their backward pass at most. All parts
/// together have passes_in_flight() (sim/step/memory/layout_memory.h) of them under way at once;
/// with several parts each has its most at another time.
std::vector<std::int64_t> most_in_flight(const Layout& layout, int stage);

}  // namespace reckon
