#include "executor/train/layers/cannot_run.h"

#include <fmt/format.h>

#include <span>
#include <string>

#include "kernels/record_id.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

/// Why not, or "".
std::string reason_not_to_run(const Layer& layer, std::span<const Layer> layers) {
  if (only_simulated(layer.op)) return "has no code that trains it";
  if (layer.four_bit) return "has weights of four bits";
  if (layer.tied_to && std::holds_alternative<Conv2d>(layer.op)) return "shares its kernels";
  const auto input = [&](std::size_t k) -> const Shape& {
    return layers[index(layer.inputs[k])].output;
  };
  const auto rows = [](std::int64_t count) {
    return count > kMostIds ? fmt::format("has {} rows, more than {}", count, kMostIds)
                            : std::string();
  };
  const auto classes = [](std::int64_t count) {
    constexpr std::int64_t kExact = std::int64_t{1} << 24;  // of a float
    return count > kExact ? fmt::format("has {} classes, more than 2^24", count) : std::string();
  };
  return std::visit(overloaded{[&](const Embedding& e) { return rows(e.rows); },
                               [&](const EmbeddingBag& e) { return rows(e.rows); },
                               [&](const SoftmaxCrossEntropy& s) { return classes(s.classes); },
                               [&](const BatchNorm&) -> std::string {
                                 return input(0).size() == 2 ? "normalises tokens" : "";
                               },
                               [&](const Add&) -> std::string {
                                 return input(0) == input(1) ? "" : "adds a number a channel";
                               },
                               [&](const ImageTokens&) -> std::string {
                                 return input(0).size() == 2 ? "makes an image of tokens" : "";
                               },
                               [&](const Attention& a) -> std::string {
                                 if (layer.inputs.size() == 4) return "has scores of distances";
                                 return a.window > 0 && !a.causal ? "has a window and is not causal"
                                                                  : "";
                               },
                               [](const auto&) { return std::string(); }},
                    layer.op);
}

}  // namespace

Diagnostics cannot_run(const ModelGraph& model) {
  Diagnostics errors;
  for (const Layer& layer : model.layers()) {
    const std::string reason = reason_not_to_run(layer, model.layers());
    if (reason.empty()) continue;
    errors.push_back({.what = fmt::format("layer '{}' ({}) {}: it cannot be trained here",
                                          layer.name, kind_name(layer.op), reason),
                      .hint = "it can be simulated; reckon-worker does not run it"});
  }
  return errors;
}

}  // namespace reckon
