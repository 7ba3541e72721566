#include "executor/train/data/samples.h"

#include <algorithm>

#include "kernels/record_id.h"
#include "sim/base/check.h"
#include "sim/base/random.h"

namespace reckon {
namespace {

constexpr Purpose kSynthetic{"synthetic_sample"};

/// The finisher of SplitMix64 [Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
/// generators", Fig. 17]: a bijection whose every input bit changes half of the output's.
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

/// The random bits of one sample: SplitMix64 from a key, by position instead of one after another.
class SampleBits {
 public:
  explicit SampleBits(std::uint64_t key) : key_(key) {}
  std::uint64_t at(std::uint64_t k) const { return mixed(key_ + (k + 1) * 0x9E3779B97F4A7C15); }

 private:
  std::uint64_t key_;
};

/// The sum of four uniform numbers of 16 bits, whole, shifted and scaled to mean 0 and deviation 1
/// (Irwin-Hall: the variance of one is (2^32 - 1) / 12).
float nearly_normal(std::uint64_t bits) {
  constexpr std::uint64_t kLow = 0xFFFF;
  const auto sum = static_cast<std::int32_t>((bits & kLow) + (bits >> 16 & kLow) +
                                             (bits >> 32 & kLow) + (bits >> 48));
  constexpr std::int32_t kTwiceMean = 4 * 65535;
  constexpr float kScale = 1.0F / 75674.45F;  // 1 / (2 sqrt(4 (2^32 - 1) / 12))
  return static_cast<float>(2 * sum - kTwiceMean) * kScale;
}

/// An id in [0, below), below < 2^32.
float whole(std::uint64_t bits, std::int64_t below) {
  const std::uint64_t id = (bits >> 32) * static_cast<std::uint64_t>(below) >> 32;
  return record_number(static_cast<std::int64_t>(id));
}

/// `first` numbers the field's values among the sample's.
void fill_field(const SampleField& field, const SampleBits& bits, std::uint64_t first,
                std::span<float> values) {
  const bool all_ids = field.ids.size() == 1 && field.ids[0].count == std::ssize(values);
  if (!all_ids)
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = nearly_normal(bits.at(first + i));
  for (const IdRange& ids : field.ids)
    for (std::int64_t k = ids.first; k < ids.first + ids.count; ++k) {
      const auto i = static_cast<std::size_t>(k);
      values[i] = whole(bits.at(first + i), ids.below);
    }
}

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
  const std::uint64_t high = stream(), low = stream();
  const SampleBits bits(high << 32 | low);
  std::uint64_t first = 0;
  const auto fill = [&](const SampleField& field, std::span<float> values) {
    fill_field(field, bits, first, values);
    first += values.size();
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
