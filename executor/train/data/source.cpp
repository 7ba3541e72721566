#include "executor/train/data/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/train/data/formats.h"

namespace reckon {
namespace {

class SyntheticSource : public DataSource {
 public:
  SyntheticSource(SampleFormat format, std::uint64_t seed, std::int64_t samples)
      : format_(std::move(format)), seed_(seed), samples_(std::max<std::int64_t>(samples, 1)) {}
  std::int64_t samples() const override { return samples_; }
  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    fill_synthetic(format_, seed_, index, batch, at);
  }

 private:
  SampleFormat format_;
  std::uint64_t seed_;
  std::int64_t samples_;
};

}  // namespace

void data::require_classes(const std::filesystem::path& path, const SampleFormat& format,
                           const Shape& shape, std::int64_t classes) {
  const bool one = format.inputs.size() == 1 && format.targets.size() == 1 &&
                   format.targets[0].shape == Shape{1} && !format.targets[0].ids.empty();
  if (!one)
    throw DataError(
        fmt::format("{}: holds images and classes, which the model does not take", path.string()));
  const Shape& taken = format.inputs[0].shape;
  const bool flat = taken == Shape{elements(shape)};
  if (taken != shape && !flat)
    throw DataError(fmt::format("{}: holds images of {}, the model takes {}", path.string(),
                                to_text(shape), to_text(taken)));
  if (format.targets[0].ids[0].below < classes)
    throw DataError(fmt::format("{}: holds {} classes, the model has {}", path.string(), classes,
                                format.targets[0].ids[0].below));
}

InputWork work_between(const InputWork& before, const InputWork& now) {
  return {.samples = now.samples - before.samples,
          .skipped = now.skipped - before.skipped,
          .read = now.read - before.read,
          .reading = now.reading - before.reading,
          .requests = now.requests - before.requests,
          .decode_cpu = now.decode_cpu - before.decode_cpu,
          .first_skipped = now.first_skipped};
}

std::unique_ptr<DataSource> open_data(const DataSpec& data, const std::filesystem::path& directory,
                                      const ModelGraph& model, std::uint64_t seed,
                                      std::int64_t samples, double zipf_exponent,
                                      const std::vector<std::string>& classes) {
  SampleFormat format = sample_format(model);
  const std::filesystem::path path = directory / data.path;
  if (format.masked > 0 && data.format != DataFormat::synthetic)
    throw DataError(fmt::format("{}: model {} learns masked tokens, which only synthetic data has",
                                path.string(), model.name()));
  switch (data.format) {
    case DataFormat::cifar10:
      return data::open_cifar10(path, format);
    case DataFormat::mnist:
      return data::open_mnist(path, format);
    case DataFormat::images:
      return data::open_images(path, format, classes);
    case DataFormat::tokens:
      return data::open_tokens(path, data::TokenWidth::uint16, format);
    case DataFormat::text:
      return data::open_tokens(path, data::TokenWidth::byte, format);
    case DataFormat::characters:
      return data::open_tokens(path, data::TokenWidth::character, format);
    case DataFormat::clicks:
      return data::open_clicks(std::move(format), seed, samples, zipf_exponent);
    case DataFormat::image_folder:
    case DataFormat::webdataset:
    case DataFormat::tfrecord:
    case DataFormat::megatron:
    case DataFormat::numpy:
      throw DataError(fmt::format("{}: format {} is read by reckon-worker alone", path.string(),
                                  to_text(data.format)));
    case DataFormat::synthetic:
      break;
  }
  return std::make_unique<SyntheticSource>(std::move(format), seed, samples);
}

std::unique_ptr<DataSource> open_test_set(const DataSpec& data,
                                          const std::filesystem::path& directory,
                                          const ModelGraph& model) {
  const SampleFormat format = sample_format(model);
  const std::filesystem::path folder = directory / data.path;
  return data.format == DataFormat::cifar10
             ? data::open_cifar10(folder, format, data::PartOfSet::test)
             : data::open_mnist(folder, format, data::PartOfSet::test);
}

}  // namespace reckon
