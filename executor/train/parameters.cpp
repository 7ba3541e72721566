#include "executor/train/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/model/layer_rules.h"

namespace reckon {

ParameterLayout parameter_layout(const ModelGraph& model) {
  ParameterLayout layout;
  for (const Layer& layer : model.layers()) {
    LayerWeights shapes = weights_of(layer.op);
    const auto add = [&](std::string_view what, Shape shape) {
      if (shape.empty()) return;
      const auto count = static_cast<std::size_t>(elements(shape));
      layout.slots.push_back({.layer = layer.id,
                              .name = layer.name + "." + std::string(what),
                              .shape = std::move(shape),
                              .first = layout.count,
                              .count = count,
                              .trained = !layer.frozen});
      layout.count += count;
    };
    if (!layer.tied_to) add("weight", std::move(shapes.weight));
    add("bias", std::move(shapes.bias));
  }
  RECKON_CHECK(static_cast<std::int64_t>(layout.count) == model.parameters());
  return layout;
}

ParameterLayout layout_of_layers(const ModelGraph& model,
                                 const std::function<bool(std::size_t layer)>& has) {
  const ParameterLayout whole = parameter_layout(model);
  ParameterLayout layout;
  const auto add = [&](ParameterSlot slot) {
    slot.first = layout.count;
    layout.count += slot.count;
    layout.slots.push_back(std::move(slot));
  };
  for (const ParameterSlot& slot : whole.slots)
    if (has(index(slot.layer))) add(slot);
  for (ParameterSlot slot : whole.slots) {
    if (has(index(slot.layer)) || slot.name.ends_with(".bias")) continue;
    const bool needed = std::ranges::any_of(model.layers(), [&](const Layer& layer) {
      return layer.tied_to == slot.layer && has(index(layer.id));
    });
    if (!needed) continue;
    slot.trained = false;
    slot.copied = true;
    add(std::move(slot));
  }
  return layout;
}

std::string optimizer_tensor(const std::string& parameter, std::size_t k, std::size_t buffers) {
  constexpr std::array kMoments{"exp_avg", "exp_avg_sq"};  // of AdamW
  RECKON_CHECK(k < buffers && buffers <= kMoments.size());
  return fmt::format("optimizer.state.{}.{}", parameter,
                     buffers == 1 ? "momentum_buffer" : kMoments[k]);
}

}  // namespace reckon
