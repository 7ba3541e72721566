#pragma once
#include <cstdint>
#include <span>

#include "executor/data/images/decode.h"
#include "sim/base/random.h"

// Which part of an image becomes a sample, and its scaling to the model's size.
namespace reckon::data {

/// A part of an image, in its pixels.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

/// 8 to 100 % of the area at an aspect ratio of 3/4 to 4/3, anywhere; after ten draws that do not
/// fit, the largest part in the middle with a ratio within those bounds [torchvision,
/// transforms.RandomResizedCrop; Szegedy 2015, "Going deeper with convolutions", section 6]. Whole
/// pixels.
Box random_box(std::int64_t width, std::int64_t height, RandomStream& random);

/// What is left of the image when its shorter side is scaled to `resize` pixels and `height` x
/// `width` of them are cut out of the middle. Precondition: resize >= width, height.
Box center_box(const Image& image, std::int64_t resize, std::int64_t height, std::int64_t width);

/// The box, scaled to `width` x `height` pixels: planes (channels, height, width) of values 0 to
/// 255. Bilinear, with the filter as wide as the scaling when it shrinks [Pillow, Image.resize,
/// BILINEAR]; what lies outside of `within` has no part in it. `mirrored`: left and right change
/// places.
void resample(const Image& image, const Box& box, const Box& within, bool mirrored,
              std::int64_t height, std::int64_t width, std::span<float> planes);

}  // namespace reckon::data
