#include "executor/cuda/runtime/logit_strides.h"

#include "executor/cuda/memory/parameters.h"

namespace reckon::cuda {

std::vector<std::int64_t> logit_strides(const RankModel& model, LayerSpan part) {
  const auto& layers = model.layers;
  std::vector<std::int64_t> strides(layers.size());
  std::vector<int> readers(layers.size());
  for (const RankLayer& layer : layers)
    for (const LayerId id : layer.layer.inputs) ++readers[index(id)];
  for (std::size_t i = part.first; i < part.end; ++i) {
    if (!std::holds_alternative<SoftmaxCrossEntropy>(layers[i].layer.op)) continue;
    const std::size_t made = index(layers[i].layer.inputs[0]);
    const auto* linear = std::get_if<Linear>(&layers[made].layer.op);
    // The sums of a bias gradient are over rows without gaps.
    if (linear != nullptr && !linear->bias && readers[made] == 1 && part.has(made) &&
        linear->out % kMatrixRows != 0)
      strides[made] = whole_rows(linear->out);
  }
  return strides;
}

RankModel with_strides(RankModel model, const std::vector<std::int64_t>& strides) {
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (strides[i] > 0) model.layers[i].layer.output.back() = strides[i];
  return model;
}

}  // namespace reckon::cuda
