#include <fmt/format.h>
#include <png.h>

#include "executor/data/images/decode.h"

namespace reckon::data {
namespace {

struct PngImage {
  png_image image{};
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  std::string damage() const { return fmt::format("damaged PNG: {}", image.message); }
};

}  // namespace

tl::expected<Image, std::string> decode_png(std::span<const std::uint8_t> bytes, int channels) {
  PngImage png;
  if (png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size()) == 0)
    return tl::unexpected(png.damage());
  const std::int64_t width = png.image.width, height = png.image.height;
  if (width * height > kMostPixels)
    return tl::unexpected(
        fmt::format("PNG of {} x {} pixels: at most {} are read", width, height, kMostPixels));
  // With alpha, which is then left out: without, libpng would lay the image over a background.
  png.image.format = channels == 1 ? PNG_FORMAT_GA : PNG_FORMAT_RGBA;
  std::vector<std::uint8_t> decoded(PNG_IMAGE_SIZE(png.image));
  if (png_image_finish_read(&png.image, nullptr, decoded.data(), 0, nullptr) == 0)
    return tl::unexpected(png.damage());
  const auto pixels = static_cast<std::size_t>(width * height);
  const auto each = static_cast<std::size_t>(channels);
  Image image{width, height, channels, std::vector<std::uint8_t>(pixels * each)};
  for (std::size_t p = 0; p < pixels; ++p)
    for (std::size_t c = 0; c < each; ++c) image.pixels[p * each + c] = decoded[p * (each + 1) + c];
  return image;
}

}  // namespace reckon::data
