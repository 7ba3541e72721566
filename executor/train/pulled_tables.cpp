#include "executor/train/pulled_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/record_id.h"
#include "sim/base/check.h"
#include "sim/model/lookup_tables.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

/// A layer that reads numbers of the samples.
struct Reader {
  LayerId layer{}, input{};
  std::int64_t first = 0, count = 0;
  bool same_numbers(const Reader& other) const {
    return first == other.first && count == other.count;
  }
  bool meets(const Reader& other) const {
    return input == other.input && first < other.first + other.count && other.first < first + count;
  }
};

std::vector<Reader> readers_of(const ModelGraph& model) {
  std::vector<Reader> readers;
  for (const Layer& layer : model.layers()) {
    if (std::holds_alternative<SelectFeatures>(layer.op)) continue;  // who reads it is one
    for (const LayerId input : layer.inputs) {
      const Layer* from = &model.layers()[index(input)];
      std::int64_t first = 0, count = std::numeric_limits<std::int64_t>::max() / 2;
      if (const auto* selected = std::get_if<SelectFeatures>(&from->op)) {
        first = selected->first;
        count = selected->count;
        from = &model.layers()[index(from->inputs.front())];
      }
      if (std::holds_alternative<InputLayer>(from->op))
        readers.push_back({layer.id, from->id, first, count});
    }
  }
  return readers;
}

}  // namespace

ParameterLayout pulled_layout(const ModelGraph& model, std::int64_t samples) {
  const auto tables = lookup_tables(model);
  ParameterLayout layout;
  for (ParameterSlot slot : parameter_layout(model).slots) {
    slot.first = layout.count;
    if (const auto table = std::ranges::find(tables, slot.layer, &LookupTable::layer);
        table != tables.end()) {
      slot.global = slot.shape;
      slot.shape.front() = std::min(table->rows, table->ids * samples);
      slot.count = static_cast<std::size_t>(elements(slot.shape));
      slot.pulled = true;
    }
    layout.count += slot.count;
    layout.slots.push_back(std::move(slot));
  }
  return layout;
}

Diagnostics cannot_pull_rows(const ModelGraph& model) {
  Diagnostics errors;
  const auto tables = lookup_tables(model);
  const auto is_table = [&](LayerId layer) {
    return std::ranges::find(tables, layer, &LookupTable::layer) != tables.end();
  };
  const auto readers = readers_of(model);
  for (const Reader& table : readers)
    for (const Reader& other : readers) {
      if (!is_table(table.layer) || other.layer == table.layer || !table.meets(other)) continue;
      if (is_table(other.layer) && table.same_numbers(other)) continue;
      errors.push_back(
          {.what = fmt::format("layer '{}' reads numbers of a sample that are ids of table '{}', "
                               "whose rows are pulled",
                               model.layers()[index(other.layer)].name,
                               model.layers()[index(table.layer)].name),
           .hint = "--set workload.strategy.sparse_embeddings=false"});
    }
  return errors;
}

TablePlaces::TablePlaces(const ModelGraph& model, const ParameterLayout& layout) {
  RECKON_CHECK(cannot_pull_rows(model).empty());
  std::size_t inputs = 0;
  for (const Layer& layer : model.layers())
    inputs += std::holds_alternative<InputLayer>(layer.op) ? 1 : 0;
  inputs_.resize(inputs);
  for (const LookupTable& table : lookup_tables(model)) {
    const auto slot = std::ranges::find(layout.slots, table.layer, &ParameterSlot::layer);
    RECKON_CHECK(slot != layout.slots.end() && slot->pulled);
    std::size_t input = 0;
    for (const Layer& layer : model.layers()) {
      if (layer.id == table.input) break;
      input += std::holds_alternative<InputLayer>(layer.op) ? 1 : 0;
    }
    tables_.push_back({.room = slot->first,
                       .input = input,
                       .first = static_cast<std::size_t>(table.first),
                       .ids = static_cast<std::size_t>(table.ids)});
  }
}

/// Tables that read the same numbers name the same rows in the same order, which have the same
/// places: whichever is last writes what the first wrote.
BatchView TablePlaces::pull(const BatchView& batch, std::int64_t samples,
                            GradientExchange& exchange) {
  BatchView view = batch;
  const auto count = static_cast<std::size_t>(samples);
  for (const Table& table : tables_) {
    const std::span<const float> named = batch.inputs[table.input];
    std::vector<float>& placed = inputs_[table.input];
    if (view.inputs[table.input].data() != placed.data()) placed.assign(named.begin(), named.end());
    view.inputs[table.input] = placed;
    const std::size_t each = named.size() / count;
    std::vector<std::int64_t> ids;
    ids.reserve(count * table.ids);
    for (std::size_t b = 0; b < count; ++b)
      for (std::size_t k = 0; k < table.ids; ++k)
        ids.push_back(record_id(named[b * each + table.first + k]));
    const std::vector<std::size_t> places = exchange.need_rows(table.room, ids);
    for (std::size_t b = 0; b < count; ++b)
      for (std::size_t k = 0; k < table.ids; ++k)
        placed[b * each + table.first + k] =
            record_number(static_cast<std::int64_t>(places[b * table.ids + k]));
  }
  return view;
}

}  // namespace reckon
