#include "executor/data/images/image_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon::data {
namespace {

constexpr Purpose kCrop{"image_crop"};

struct Normal {
  float mean, deviation;
};
constexpr Normal kColours[] = {{0.485F, 0.229F}, {0.456F, 0.224F}, {0.406F, 0.225F}};
constexpr Normal kGrey{0.449F, 0.226F};

}  // namespace

ImageRecipe image_recipe(const DataSpec& data, const SampleFormat& format, std::uint64_t seed,
                         const std::string& where) {
  const bool images = format.inputs.size() == 1 && format.targets.size() == 1 &&
                      format.inputs[0].shape.size() == 3 &&
                      (format.inputs[0].shape[0] == 3 || format.inputs[0].shape[0] == 1) &&
                      format.targets[0].shape == Shape{1} && !format.targets[0].ids.empty();
  if (!images)
    throw DataError(
        fmt::format("{}: holds images and classes, which the model does not take", where));
  const Shape& shape = format.inputs[0].shape;  // (channels, height, width)
  const std::int64_t larger = std::max(shape[1], shape[2]);
  ImageRecipe recipe{.crop = data.crop.value_or(ImageCrop::random), .seed = seed};
  recipe.resize =
      data.resize.value_or(static_cast<std::int64_t>(std::lround(double(larger) * 256 / 224)));
  recipe.flip = data.flip.value_or(recipe.crop == ImageCrop::random);
  recipe.damaged = data.damaged.value_or(DamagedSample::fail);
  if (recipe.crop == ImageCrop::center && recipe.resize < larger)
    throw DataError(
        fmt::format("{}: workload.data.resize is {}, less than the {} x {} pixels of the model",
                    where, recipe.resize, shape[1], shape[2]));
  return recipe;
}

ImageSource::ImageSource(std::unique_ptr<Store> store, const SampleFormat& format,
                         const ImageRecipe& recipe)
    : store_(std::move(store)),
      recipe_(recipe),
      height_(format.inputs[0].shape[1]),
      width_(format.inputs[0].shape[2]),
      classes_(format.targets[0].ids[0].below),
      channels_(static_cast<int>(format.inputs[0].shape[0])) {}

std::vector<std::uint8_t> ImageSource::bytes_of(const StoredObject& object, std::int64_t offset,
                                                std::int64_t size) const {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  meter_.read(*store_, object, offset, bytes);
  return bytes;
}

void ImageSource::read_visit(std::int64_t index, std::int64_t visit, SampleBatch& batch,
                             std::int64_t at) const {
  const std::int64_t all = samples();
  for (std::int64_t tried = 0;; ++tried) {
    const std::int64_t sample = (index + tried) % all;
    try {
      const EncodedImage encoded = fetch(sample);
      const Seconds begin = processor_time();
      put(encoded, sample, visit, batch, at);
      meter_.count(encoded.unpacking + (processor_time() - begin));
      return;
    } catch (const DamagedSampleError& e) {
      if (recipe_.damaged == DamagedSample::fail) throw;
      if (tried + 1 == all) throw DataError(fmt::format("{} (and so are all others)", e.what()));
      meter_.count_skipped(e.what());
    }
  }
}

void ImageSource::require_class(std::int64_t label, const std::string& place) const {
  if (label >= 0 && label < classes_) return;
  const std::string hint = label == classes_ ? fmt::format(
                                                   "\n  labels that begin with 1, as in ImageNet's "
                                                   "TFRecords, take a model of {} outputs, "
                                                   "or shards that are written with labels from 0",
                                                   classes_ + 1)
                                             : "";
  throw DataError(fmt::format("{}: class {}, the model has {}: 0 to {}{}", place, label, classes_,
                              classes_ - 1, hint));
}

void ImageSource::put(const EncodedImage& encoded, std::int64_t index, std::int64_t visit,
                      SampleBatch& batch, std::int64_t at) const {
  require_class(encoded.label, encoded.place);
  const auto image = decode_image(encoded.bytes, channels_);
  if (!image) throw DamagedSampleError(fmt::format("{}: {}", encoded.place, image.error()));
  RandomStream random(recipe_.seed, static_cast<std::uint32_t>(visit), kCrop,
                      static_cast<std::uint32_t>(index));
  const bool mirrored = random.uniform() < 0.5 && recipe_.flip;
  const Box whole{0, 0, double(image->width), double(image->height)};
  Box box = whole, within = whole;
  switch (recipe_.crop) {
    case ImageCrop::random:
      box = within = random_box(image->width, image->height, random);
      break;
    case ImageCrop::center:
      box = center_box(*image, recipe_.resize, height_, width_);
      break;
    case ImageCrop::none:
      if (image->width != width_ || image->height != height_)
        throw DataError(fmt::format(
            "{}: has {} x {} pixels, the model takes {} x {}: crop: center or random cuts and "
            "scales",
            encoded.place, image->width, image->height, width_, height_));
  }
  const std::span<float> planes = batch.input(0, at);
  resample(*image, box, within, mirrored, height_, width_, planes);
  const std::size_t plane = planes.size() / static_cast<std::size_t>(channels_);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels_); ++c) {
    const Normal& normal = channels_ == 1 ? kGrey : kColours[c];
    const float scale = 1 / (255 * normal.deviation), shift = normal.mean / normal.deviation;
    for (float& value : planes.subspan(c * plane, plane)) value = value * scale - shift;
  }
  batch.target(0, at)[0] = static_cast<float>(encoded.label);
}

}  // namespace reckon::data
