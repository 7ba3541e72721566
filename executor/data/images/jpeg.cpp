#include <fmt/format.h>
#include <turbojpeg.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>

#include "executor/data/images/decode.h"

namespace reckon::data {
namespace {

struct TurboDelete {
  void operator()(tjhandle handle) const { tjDestroy(handle); }
};
using Turbo = std::unique_ptr<std::remove_pointer_t<tjhandle>, TurboDelete>;

/// Bytes between two markers that belong to nothing: some encoders write them, and no pixel is
/// wrong. Every other warning is of pixels that are not there.
bool harmless(std::string_view warning) {
  return warning.find("extraneous bytes") != std::string_view::npos;
}

/// Inks as Adobe writes them, where 255 is none: a colour is what the ink and black let through.
void inks_to_colours(std::span<const std::uint8_t> inks, int channels,
                     std::span<std::uint8_t> colours) {
  const auto each = static_cast<std::size_t>(channels);
  for (std::size_t p = 0; p < inks.size() / 4; ++p) {
    const std::uint8_t* ink = &inks[4 * p];
    int rgb[3];
    for (int c = 0; c < 3; ++c) rgb[c] = (ink[c] * ink[3] + 127) / 255;
    if (each == 3)
      for (std::size_t c = 0; c < 3; ++c) colours[3 * p + c] = static_cast<std::uint8_t>(rgb[c]);
    else  // ITU-R BT.601, as JPEG's luminance
      colours[p] =
          static_cast<std::uint8_t>((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
  }
}

}  // namespace

tl::expected<Image, std::string> decode_jpeg(std::span<const std::uint8_t> bytes, int channels) {
  const Turbo turbo(tjInitDecompress());
  if (!turbo) return tl::unexpected<std::string>("libjpeg-turbo cannot be started");
  const auto size = static_cast<unsigned long>(bytes.size());
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (tjDecompressHeader3(turbo.get(), bytes.data(), size, &width, &height, &sampling, &colours) !=
      0)
    return tl::unexpected(fmt::format("damaged JPEG: {}", tjGetErrorStr2(turbo.get())));
  if (width < 1 || height < 1)  // what libjpeg-turbo says of one that ends before its size
    return tl::unexpected<std::string>("damaged JPEG: ends within its header");
  if (std::int64_t{width} * height > kMostPixels)
    return tl::unexpected(
        fmt::format("JPEG of {} x {} pixels: at most {} are read", width, height, kMostPixels));
  const bool inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
  const auto pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  std::vector<std::uint8_t> decoded(pixels * static_cast<std::size_t>(inks ? 4 : channels));
  const int format = inks ? TJPF_CMYK : channels == 1 ? TJPF_GRAY : TJPF_RGB;
  if (tjDecompress2(turbo.get(), bytes.data(), size, decoded.data(), width, 0, height, format,
                    TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) != 0 &&
      (tjGetErrorCode(turbo.get()) != TJERR_WARNING || !harmless(tjGetErrorStr2(turbo.get()))))
    return tl::unexpected(fmt::format("damaged JPEG: {}", tjGetErrorStr2(turbo.get())));
  Image image{width, height, channels, {}};
  if (inks) {
    image.pixels.resize(pixels * static_cast<std::size_t>(channels));
    inks_to_colours(decoded, channels, image.pixels);
  } else {
    image.pixels = std::move(decoded);
  }
  return image;
}

}  // namespace reckon::data
