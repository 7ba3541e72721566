#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/base/diagnostic.h"

namespace reckon::data {

/// Of a tf.train.Example what a classifier reads.
struct ImageExample {
  std::span<const std::uint8_t> encoded;  // "image/encoded", or "image": a part of the message
  std::int64_t label = 0;                 // "image/class/label", or "label"
};

/// A message Example { Features features = 1 } of maps { string key = 1, Feature value = 2 }, where
/// a feature is a list of bytes (1), floats (2) or int64 (3)
/// [tensorflow/core/example/example.proto, feature.proto], in the wire format of protocol buffers
/// [protobuf.dev, "Encoding"]; the names are those of TensorFlow's ImageNet scripts and of
/// TensorFlow Datasets; packed and unpacked lists. Fields that nobody knows are passed over,
/// the last of several counts. Error: what is wrong or missing.
tl::expected<ImageExample, std::string> parse_image_example(std::span<const std::uint8_t> message);

}  // namespace reckon::data
