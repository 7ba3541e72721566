#include "sim/model/lookup_tables.h"

#include <algorithm>
#include <optional>

#include "sim/model/shapes.h"

namespace reckon {
namespace {

std::optional<LookupTable> table_of(const Layer& layer) {
  if (const auto* bag = std::get_if<EmbeddingBag>(&layer.op))
    return LookupTable{.layer = layer.id, .rows = bag->rows, .width = bag->width, .ids = bag->ids};
  if (const auto* table = std::get_if<Embedding>(&layer.op))
    return LookupTable{.layer = layer.id,
                       .rows = table->rows,
                       .width = table->width,
                       .ids = layer.output.empty() ? 1 : layer.output.front()};
  return std::nullopt;
}

}  // namespace

std::vector<LookupTable> lookup_tables(const ModelGraph& model) {
  const auto layers = model.layers();
  std::vector<LookupTable> tables;
  for (const Layer& layer : layers) {
    std::optional<LookupTable> table = table_of(layer);
    if (!table || layer.frozen || layer.tied_to || layer.inputs.size() != 1) continue;
    const Layer* from = &layers[index(layer.inputs.front())];
    if (const auto* selected = std::get_if<SelectFeatures>(&from->op)) {
      table->first = selected->first;
      from = &layers[index(from->inputs.front())];
    }
    if (!std::holds_alternative<InputLayer>(from->op)) continue;
    const bool shared =
        std::ranges::any_of(layers, [&](const Layer& other) { return other.tied_to == layer.id; });
    if (shared) continue;
    table->input = from->id;
    tables.push_back(*table);
  }
  return tables;
}

}  // namespace reckon
