#pragma once
#include <span>
#include <vector>

#include "executor/train/parameters.h"
#include "executor/train/recipe/schedule.h"
#include "sim/model/graph.h"
#include "sim/scenario/layout.h"

// How a pipeline cuts a network: as the forecast does (FoldedModel::partition).
namespace reckon {

/// Which layers each stage has: its `interleave` parts, in their order.
struct PipelineStages {
  /// `stage_blocks`: of each stage; empty: as even as can be.
  PipelineStages(const ModelGraph& model, const Layout& layout,
                 std::span<const int> stage_blocks = {});
  std::vector<std::vector<LayerSpan>> parts;  // by stage
  int stage_of(std::size_t layer) const;
  /// Of a rank's parameters the stage's, and copies of those of other stages that its layers are
  /// tied to.
  ParameterLayout parameters(const ModelGraph& model, const ParameterLayout& all, int stage) const;
};

}  // namespace reckon
