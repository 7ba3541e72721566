#include "executor/train/samples.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace reckon {
namespace {

constexpr Purpose kSynthetic{"synthetic_sample"};

/// What a layer that reads an input makes of it.
void note_reader(const Layer& reader, std::span<const Layer> layers, SampleField& field) {
  const std::int64_t all = elements(field.shape);
  if (const Embedding* e = std::get_if<Embedding>(&reader.op)) field.ids = {{0, all, e->rows}};
  if (const EmbeddingBag* e = std::get_if<EmbeddingBag>(&reader.op))
    field.ids = {{0, all, e->rows}};
  const SelectFeatures* selected = std::get_if<SelectFeatures>(&reader.op);
  if (selected == nullptr) return;
  for (const Layer& layer : layers) {
    const EmbeddingBag* bag = std::get_if<EmbeddingBag>(&layer.op);
    if (bag != nullptr && layer.inputs[0] == reader.id)
      field.ids.push_back({selected->first, selected->count, bag->rows});
  }
}

}  // namespace

SampleFormat sample_format(const ModelGraph& model) {
  SampleFormat format;
  const auto layers = model.layers();
  for (const Layer& layer : layers) {
    const Shape& before =
        layer.inputs.empty() ? layer.output : layers[index(layer.inputs[0])].output;
    if (std::holds_alternative<InputLayer>(layer.op)) {
      SampleField field{layer.output, {}};
      for (const Layer& reader : layers)
        if (std::ranges::find(reader.inputs, layer.id) != reader.inputs.end())
          note_reader(reader, layers, field);
      format.inputs.push_back(std::move(field));
    } else if (const auto* loss = std::get_if<SoftmaxCrossEntropy>(&layer.op)) {
      const std::int64_t rows = elements(before) / loss->classes;
      format.targets.push_back({{rows}, {{0, rows, loss->classes}}});
    } else if (std::holds_alternative<SigmoidCrossEntropy>(layer.op)) {
      format.targets.push_back({before, {{0, elements(before), 2}}});
    } else if (std::holds_alternative<MeanSquaredError>(layer.op)) {
      format.targets.push_back({before, {}});
    }
    const SelectTokens* select = std::get_if<SelectTokens>(&layer.op);
    if (select != nullptr && select->masked) format.masked = select->count;
  }
  return format;
}

SampleBatch::SampleBatch(const SampleFormat& format, std::int64_t batch) : batch_(batch) {
  const auto room = [&](const SampleField& field) {
    return AlignedBuffer<float>(static_cast<std::size_t>(batch * elements(field.shape)));
  };
  for (const SampleField& field : format.inputs) inputs_.push_back(room(field));
  for (const SampleField& field : format.targets) targets_.push_back(room(field));
  masked_.resize(static_cast<std::size_t>(batch * format.masked));
}

BatchView SampleBatch::view() const {
  BatchView view;
  for (const auto& input : inputs_) view.inputs.push_back(input.span());
  for (const auto& target : targets_) view.targets.push_back(target.span());
  view.masked = masked_;
  return view;
}

std::span<float> SampleBatch::part(AlignedBuffer<float>& all, std::int64_t sample) const {
  RECKON_CHECK(sample >= 0);
  RECKON_CHECK(sample < batch_);
  const std::size_t each = all.size() / static_cast<std::size_t>(batch_);
  return all.span().subspan(static_cast<std::size_t>(sample) * each, each);
}

std::span<std::int32_t> SampleBatch::masked(std::int64_t sample) {
  const std::size_t each = masked_.size() / static_cast<std::size_t>(batch_);
  return std::span(masked_).subspan(static_cast<std::size_t>(sample) * each, each);
}

void fill_synthetic(const SampleFormat& format, std::uint64_t seed, std::int64_t index,
                    SampleBatch& batch, std::int64_t at) {
  RandomStream stream(seed, static_cast<std::uint32_t>(index >> 32), kSynthetic,
                      static_cast<std::uint32_t>(index));
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(stream.uniform() * static_cast<double>(n));
  };
  const auto fill = [&](const SampleField& field, std::span<float> values) {
    for (float& value : values) value = static_cast<float>(stream.normal());
    for (const IdRange& ids : field.ids)
      for (std::int64_t i = 0; i < ids.count; ++i)
        values[static_cast<std::size_t>(ids.first + i)] = static_cast<float>(below(ids.below));
  };
  for (std::size_t k = 0; k < format.inputs.size(); ++k) fill(format.inputs[k], batch.input(k, at));
  for (std::size_t k = 0; k < format.targets.size(); ++k)
    fill(format.targets[k], batch.target(k, at));
  // Distinct positions in ascending order, evenly spread over the sequence.
  if (format.masked == 0) return;
  const std::int64_t tokens = elements(format.inputs[0].shape);
  for (std::int64_t i = 0; i < format.masked; ++i)
    batch.masked(at)[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(i * tokens / format.masked);
}

}  // namespace reckon
