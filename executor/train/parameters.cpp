#include "executor/train/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/model/layer_rules.h"

namespace reckon {
namespace {

class SlotCutter {
 public:
  SlotCutter(const RankLayer& layer, const ModelPlace& place) : layer_(layer), place_(place) {}

  /// `bias`: whose dimensions lack the last of the weight's.
  void cut(ParameterSlot& slot, bool bias) const {
    Box box = whole_box(slot.global);
    const std::int64_t experts = layer_.part.experts.total;
    if (experts > 0) {
      box.first[0] = layer_.part.experts.first;
      box.length[0] = experts / place_.expert.ranks;
    }
    slot.of_experts = experts > 0;
    const bool stands = slot.of_experts || place_.expert.rank == 0;
    const std::vector<SectionPart> pieces = pieces_of(bias);
    const std::size_t at = dimension(slot.global.size(), bias);
    slot.shape = box.length;
    if (pieces.empty()) {
      slot.parts.push_back({box, slot.first, stands && place_.tensor.rank == 0});
    } else {
      slot.shape[at] = 0;
      std::size_t first = slot.first;
      for (const SectionPart& piece : pieces) {
        box.first[at] = piece.first;
        box.length[at] = piece.count;
        slot.shape[at] += piece.count;
        if (piece.count > 0) slot.parts.push_back({box, first, stands && piece.counts});
        first += static_cast<std::size_t>(elements(box.length));
      }
    }
    slot.sums_gradient = layer_.sums_weights && slot.trained;
  }

 private:
  /// Empty: the tensor is whole along it.
  std::vector<SectionPart> pieces_of(bool bias) const {
    std::vector<SectionPart> pieces;
    if (layer_.split.empty() || (bias && layer_.cut == TensorCut::row)) return pieces;
    std::int64_t before = 0;
    for (const FeatureSection& section : layer_.split) {
      pieces.push_back(part_of(section, place_.tensor));
      pieces.back().first += before;
      before += section.width;
    }
    return pieces;
  }
  /// (..., out, in) of a matrix, (rows, width) of a table, (..., out) of a bias.
  std::size_t dimension(std::size_t dimensions, bool bias) const {
    if (bias) return dimensions - 1;
    const bool table = split_rule(layer_.layer.op) == SplitRule::rows;
    if (table || dimensions < 2) return 0;
    return layer_.cut == TensorCut::row ? dimensions - 1 : dimensions - 2;
  }

  const RankLayer& layer_;
  const ModelPlace& place_;
};

}  // namespace

ParameterLayout parameter_layout(const ModelGraph& model) {
  ParameterLayout layout = parameter_layout(model, whole_model(model));
  RECKON_CHECK(static_cast<std::int64_t>(layout.count) == model.parameters());
  return layout;
}

ParameterLayout parameter_layout(const ModelGraph& model, const ModelPlace& place) {
  const auto rank = make_rank_model(model, place);
  RECKON_CHECK(rank.has_value());
  return parameter_layout(model, *rank);
}

ParameterLayout parameter_layout(const ModelGraph& model, const RankModel& rank) {
  ParameterLayout layout;
  for (const RankLayer& local : rank.layers) {
    if (local.is_exchange()) continue;
    const Layer& layer = model.layers()[index(local.origin)];
    LayerWeights shapes = weights_of(layer.op);
    const auto add = [&](std::string_view what, Shape shape) {
      if (shape.empty()) return;
      ParameterSlot slot{.layer = layer.id,
                         .name = layer.name + "." + std::string(what),
                         .shape = shape,
                         .first = layout.count,
                         .trained = !layer.frozen};
      if (!rank.place.alone()) {
        slot.global = std::move(shape);
        SlotCutter(local, rank.place).cut(slot, what == "bias");
      }
      slot.count = static_cast<std::size_t>(elements(slot.shape));
      layout.count += slot.count;
      layout.slots.push_back(std::move(slot));
    };
    if (!layer.tied_to) add("weight", std::move(shapes.weight));
    add("bias", std::move(shapes.bias));
  }
  return layout;
}

std::vector<SlotSlice> slices_of(const ParameterSlot& slot, const std::string& name) {
  if (slot.pulled) return {};
  if (slot.global.empty()) return {{whole_tensor(name, slot.shape), slot.first, slot.count}};
  std::vector<SlotSlice> slices;
  for (const SlotPart& part : slot.parts)
    slices.push_back({.tensor = {.name = name, .global = slot.global, .box = part.box},
                      .first = part.first,
                      .count = static_cast<std::size_t>(elements(part.box.length))});
  return slices;
}

ParameterSlot moved_to(ParameterSlot slot, std::size_t first) {
  for (SlotPart& part : slot.parts) part.first = part.first - slot.first + first;
  slot.first = first;
  return slot;
}

ParameterLayout layout_of_layers(const ModelGraph& model, const ParameterLayout& whole,
                                 const std::function<bool(std::size_t layer)>& has) {
  ParameterLayout layout;
  const auto add = [&](ParameterSlot slot) {
    layout.slots.push_back(moved_to(std::move(slot), layout.count));
    layout.count += layout.slots.back().count;
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
