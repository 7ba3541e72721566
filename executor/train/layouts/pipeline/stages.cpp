#include "executor/train/layouts/pipeline/stages.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/step/memory/folded_model.h"

namespace reckon {

PipelineStages::PipelineStages(const ModelGraph& model, const Layout& layout,
                               std::span<const int> stage_blocks) {
  const int count = layout.pipeline * layout.interleave;
  FoldedModel folded(model);
  if (!stage_blocks.empty())  // the plan's: they add up to the model's
    RECKON_CHECK(std::ssize(stage_blocks) == count && folded.cut_as(stage_blocks));
  const std::vector<std::size_t>& first = folded.partition(count).first_layers;
  parts.resize(std::size_t(layout.pipeline));
  for (std::size_t k = 0; k < first.size(); ++k) {
    const std::size_t end = k + 1 < first.size() ? first[k + 1] : model.layers().size();
    parts[k % std::size_t(layout.pipeline)].push_back({first[k], end});
  }
}

int PipelineStages::stage_of(std::size_t layer) const {
  for (std::size_t stage = 0; stage < parts.size(); ++stage)
    if (std::ranges::any_of(parts[stage], [&](const LayerSpan& s) { return s.has(layer); }))
      return int(stage);
  return -1;
}

ParameterLayout PipelineStages::parameters(const ModelGraph& model, const ParameterLayout& all,
                                           int stage) const {
  return layout_of_layers(model, all, [&](std::size_t layer) { return stage_of(layer) == stage; });
}

}  // namespace reckon
