#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <charconv>
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

/// A copy without what libjpeg-turbo warns of in front of the first scan: bytes between segments,
/// numbers of JFIF and Adobe that it does not know and passes over. No pixel hangs on them; but it
/// tells the first warning alone, which would hide one of damaged pixels.
std::vector<std::uint8_t> with_plain_header(std::span<const std::uint8_t> bytes, bool inks) {
  constexpr std::uint8_t kScan = 0xDA, kJfif = 0xE0, kAdobe = 0xEE;
  std::vector<std::uint8_t> plain{0xFF, 0xD8};
  std::size_t at = plain.size();
  const auto is_marker = [&](std::size_t k) {
    return bytes[k] == 0xFF && bytes[k + 1] != 0 && bytes[k + 1] != 0xFF;
  };
  while (true) {
    while (at + 4 <= bytes.size() && !is_marker(at)) ++at;
    if (at + 4 > bytes.size() || bytes[at + 1] == kScan) break;
    const std::uint8_t marker = bytes[at + 1];
    const bool alone = (marker >= 0xD0 && marker <= 0xD9) || marker == 1;
    const std::size_t size = alone ? 2u : 2u + (std::size_t{bytes[at + 2]} << 8 | bytes[at + 3]);
    if (size > bytes.size() - at) break;
    const auto segment = bytes.subspan(at, size);
    plain.insert(plain.end(), segment.begin(), segment.end());
    std::uint8_t* const own = &plain[plain.size() - size];
    const auto holds = [&](std::string_view name) {
      return size >= 16 && std::equal(name.begin(), name.end(), own + 4);
    };
    if (marker == kJfif && holds("JFIF")) own[9] = 1;                                // its version
    if (marker == kAdobe && holds("Adobe") && own[15] != 0) own[15] = inks ? 2 : 1;  // YCCK, YCbCr
    at += size;
  }
  plain.insert(plain.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
  return plain;
}

/// Does the warning speak of zeros alone between the last scan and the end of the image? Some
/// programs pad so. What a damaged scan has left over when all pixels are made are other bytes.
bool is_padding(std::string_view warning, std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kBegin = "Corrupt JPEG data: ",
                             kEnd = " extraneous bytes before marker 0xd9";
  constexpr std::array<std::uint8_t, 2> kEndOfImage{0xFF, 0xD9};
  if (!warning.starts_with(kBegin) || !warning.ends_with(kEnd)) return false;
  std::size_t extra = 0;
  std::from_chars(warning.data() + kBegin.size(), warning.data() + warning.size(), extra);
  const auto end =
      std::find_end(bytes.begin(), bytes.end(), kEndOfImage.begin(), kEndOfImage.end());
  if (extra == 0 || extra > static_cast<std::size_t>(end - bytes.begin())) return false;
  return std::all_of(end - static_cast<std::ptrdiff_t>(extra), end,
                     [](std::uint8_t byte) { return byte == 0; });
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
    else
      colours[p] = luminance(rgb[0], rgb[1], rgb[2]);
  }
}

}  // namespace

tl::expected<Image, std::string> decode_jpeg(std::span<const std::uint8_t> bytes, int channels) {
  const Turbo turbo(tjInitDecompress());
  if (!turbo) return tl::unexpected<std::string>("libjpeg-turbo cannot be started");
  auto size = static_cast<unsigned long>(bytes.size());
  int width = 0, height = 0, sampling = 0, colours = 0;
  const bool warned = tjDecompressHeader3(turbo.get(), bytes.data(), size, &width, &height,
                                          &sampling, &colours) != 0;
  if (warned && tjGetErrorCode(turbo.get()) != TJERR_WARNING)
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
  // Warnings of scans are of pixels that are not there, also that of bytes behind one: what a
  // damaged scan has left over when all pixels are made looks so.
  std::vector<std::uint8_t> plain;
  if (warned) {
    plain = with_plain_header(bytes, inks);
    bytes = plain;
    size = static_cast<unsigned long>(bytes.size());
  }
  if (tjDecompress2(turbo.get(), bytes.data(), size, decoded.data(), width, 0, height, format,
                    TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) != 0 &&
      !(tjGetErrorCode(turbo.get()) == TJERR_WARNING &&
        is_padding(tjGetErrorStr2(turbo.get()), bytes)))
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
