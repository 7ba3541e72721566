#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/data/images/crop.h"
#include "executor/data/input_meter.h"
#include "executor/train/data/source.h"

namespace reckon::data {

/// A sample that cannot be used, while those beside it can: `damaged: skip` leaves it out.
struct DamagedSampleError : DataError {
  using DataError::DataError;
};

/// An image as it is stored, and its class.
struct EncodedImage {
  std::vector<std::uint8_t> bytes;
  std::int64_t label = 0;
  std::string place;    // for messages
  Seconds unpacking{};  // of a processor, from the bytes that are stored to these
};

/// What becomes of an image (workload.data).
struct ImageRecipe {
  ImageCrop crop = ImageCrop::random;
  std::int64_t resize = 0;  // of the shorter side, before crop center
  bool flip = true;         // at random, one image in two
  DamagedSample damaged = DamagedSample::fail;
  std::uint64_t seed = 1;
};
/// With what is not said filled in: crop random, resize 256/224 of the model's size, flip with crop
/// random. Throws DataError where the model takes no images, or larger ones than `resize`.
ImageRecipe image_recipe(const DataSpec& data, const SampleFormat& format, std::uint64_t seed,
                         const std::string& where);

/// Encoded images from wherever they are stored, as samples: decoded, cut, scaled to the model's
/// size, mirrored, and normalised by the mean and deviation of ImageNet's channels
/// [torchvision, models: (0.485, 0.456, 0.406), (0.229, 0.224, 0.225); grey: their means]. Which
/// part is cut out is a function of (seed, visit, sample).
class ImageSource : public DataSource {
 public:
  ImageSource(std::unique_ptr<Store> store, const SampleFormat& format, const ImageRecipe& recipe);
  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const final {
    read_visit(index, 0, batch, at);
  }
  /// A damaged sample is an error, or the next that is whole stands in its place.
  void read_visit(std::int64_t index, std::int64_t visit, SampleBatch& batch,
                  std::int64_t at) const final;
  std::optional<InputWork> work() const final { return meter_.work(); }
  std::vector<std::string> warnings() const final { return warnings_; }

 protected:
  /// Throws DataError, DamagedSampleError.
  virtual EncodedImage fetch(std::int64_t index) const = 0;

  /// Throws DataError of a class that the model does not have; `place`: whose.
  void require_class(std::int64_t label, const std::string& place) const;
  void warn(std::string what) { warnings_.push_back(std::move(what)); }
  const Store& store() const { return *store_; }
  /// From the store, measured.
  std::vector<std::uint8_t> bytes_of(const StoredObject& object, std::int64_t offset,
                                     std::int64_t size) const;

 private:
  void put(const EncodedImage& encoded, std::int64_t index, std::int64_t visit, SampleBatch& batch,
           std::int64_t at) const;

  std::unique_ptr<Store> store_;
  ImageRecipe recipe_;
  std::int64_t height_, width_, classes_;
  int channels_;
  std::vector<std::string> warnings_;
  mutable InputMeter meter_;
};

}  // namespace reckon::data
