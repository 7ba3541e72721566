#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"

// Encoded images as pixels: JPEG by libjpeg-turbo, PNG by libpng.
namespace reckon::data {

/// Rows from the top; the channels of a pixel stand beside each other.
struct Image {
  std::int64_t width = 0, height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;  // (height, width, channels)
};

/// Larger images are refused: a damaged or hostile header must not take all memory.
inline constexpr std::int64_t kMostPixels = 100'000'000;

/// Grey of a colour, by the weights of ITU-R BT.601: as JPEG's luminance, and Pillow's.
constexpr std::uint8_t luminance(int red, int green, int blue) {
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

/// The image in `bytes`, whose first bytes say its kind, in 3 channels (red, green, blue) or 1
/// (grey), whatever it has. An alpha channel is left out; of 16 bits the upper 8 are taken; what a
/// PNG says of its gamma and colours is not applied (nor is it by Pillow); a JPEG of four colours
/// (CMYK) becomes one of three; the orientation that a camera notes is not applied (nor is it by
/// torchvision). Error: what is wrong with it.
tl::expected<Image, std::string> decode_image(std::span<const std::uint8_t> bytes, int channels);

tl::expected<Image, std::string> decode_jpeg(std::span<const std::uint8_t> bytes, int channels);
tl::expected<Image, std::string> decode_png(std::span<const std::uint8_t> bytes, int channels);

}  // namespace reckon::data
