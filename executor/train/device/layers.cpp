#include "executor/train/device/layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

/// Is a row of it what an expert has of a token?
bool has_rows_of_experts(const Layer& layer, std::span<const Layer> layers) {
  const Layer* at = &layer;
  while (!std::holds_alternative<ExpertDispatch>(at->op)) {
    if (std::holds_alternative<ExpertCombine>(at->op) || at->inputs.empty()) return false;
    at = &layers[index(at->inputs[0])];
  }
  return true;
}

/// The input of the model, or some of its fields.
bool is_input(const Layer& layer, std::span<const Layer> layers) {
  if (std::holds_alternative<InputLayer>(layer.op)) return true;
  return std::holds_alternative<SelectFeatures>(layer.op) &&
         std::holds_alternative<InputLayer>(layers[index(layer.inputs[0])].op);
}

bool repeats_an_input(const Layer& layer) {
  std::vector<LayerId> inputs = layer.inputs;
  std::ranges::sort(inputs);
  return std::ranges::adjacent_find(inputs) != inputs.end();
}

}  // namespace

std::string reason_not_on_device(const Layer& layer, std::span<const Layer> layers) {
  const auto input = [&](std::size_t k) -> const Layer& { return layers[index(layer.inputs[k])]; };
  constexpr const char* kNone = "";
  const bool reads_input = !layer.inputs.empty() && is_input(input(0), layers);
  return std::visit(
      overloaded{
          [&](const Conv2d&) { return kNone; },
          [&](const Dropout& d) {
            return d.rate > 0 && has_rows_of_experts(layer, layers)
                       ? "drops rows of experts, whose order is another there"
                       : kNone;
          },
          [&](const Embedding&) { return reads_input ? kNone : "does not read the input"; },
          [&](const EmbeddingBag&) { return reads_input ? kNone : "does not read the input"; },
          [&](const SelectFeatures&) { return kNone; },
          [&](const Concat&) { return kNone; },
          [&](const PairwiseDots& d) {
            constexpr std::int64_t kMost = 64;  // vectors, of kernels/pairwise_dots.h
            return d.vectors > kMost         ? "has more than 64 vectors"
                   : repeats_an_input(layer) ? "reads one layer twice"
                                             : kNone;
          },
          [&](const SigmoidCrossEntropy&) { return kNone; },
          [&](const Attention& a) {
            return a.alibi ? "has ALiBi" : a.head_width > 256 ? "has heads wider than 256" : kNone;
          },
          [&](const Multiply&) { return kNone; },
          [&](const Add&) {
            return input(0).output == input(1).output ? kNone : "adds a number a channel";
          },
          [&](const SoftmaxCrossEntropy&) { return kNone; },
          [&](const MeanSquaredError&) { return kNone; },
          [&](const SelectTokens&) { return kNone; },
          [&](const ScaleBy&) { return kNone; },
          [&](const PositionEmbedding&) { return kNone; },
          [&](const InputLayer&) { return kNone; },
          [&](const Linear&) { return kNone; },
          [&](const BatchNorm&) { return kNone; },
          [&](const LayerNorm&) { return kNone; },
          [&](const RmsNorm&) { return kNone; },
          [&](const Activation&) { return kNone; },
          [&](const Pool2d&) { return kNone; },
          [&](const GlobalAveragePool&) { return kNone; },
          [&](const Flatten&) { return kNone; },
          [&](const RotaryEmbedding&) { return kNone; },
          [&](const ExpertDispatch&) { return kNone; },
          [&](const ExpertLinear&) { return kNone; },
          [&](const ExpertCombine&) { return kNone; },
          [&](const auto&) { return "has no CUDA kernel"; }},
      layer.op);
}

bool is_device_loss(const LayerOp& op) {
  return std::holds_alternative<SoftmaxCrossEntropy>(op) ||
         std::holds_alternative<SigmoidCrossEntropy>(op) ||
         std::holds_alternative<MeanSquaredError>(op);
}

std::vector<double> loss_weights(const ModelGraph& model) {
  const auto layers = model.layers();
  std::vector<double> weights(layers.size());
  weights.back() = 1;
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (weights[i] == 0 || is_device_loss(layers[i].op)) continue;
    const auto* scaled = std::get_if<ScaleBy>(&layers[i].op);
    RECKON_CHECK(scaled != nullptr || std::holds_alternative<Add>(layers[i].op));  // ModelGraph
    for (const LayerId input : layers[i].inputs)
      weights[index(input)] += weights[i] * (scaled != nullptr ? scaled->factor : 1);
  }
  return weights;
}

Diagnostics cannot_run_on_device(const ModelGraph& model) {
  Diagnostics errors;
  for (const Layer& layer : model.layers()) {
    const std::string reason = reason_not_on_device(layer, model.layers());
    if (reason.empty()) continue;
    errors.push_back({.what = fmt::format("layer '{}' ({}) {}: it cannot be trained on a device",
                                          layer.name, kind_name(layer.op), reason),
                      .hint = "--device cpu trains it"});
  }
  return errors;
}

}  // namespace reckon
