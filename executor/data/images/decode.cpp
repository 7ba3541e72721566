#include "executor/data/images/decode.h"

#include <algorithm>
#include <array>

namespace reckon::data {
namespace {

template <std::size_t N>
bool begins(std::span<const std::uint8_t> bytes, const std::array<std::uint8_t, N>& with) {
  return bytes.size() >= N && std::equal(with.begin(), with.end(), bytes.begin());
}

}  // namespace

tl::expected<Image, std::string> decode_image(std::span<const std::uint8_t> bytes, int channels) {
  constexpr std::array<std::uint8_t, 3> kJpeg{0xFF, 0xD8, 0xFF};
  constexpr std::array<std::uint8_t, 8> kPng{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (begins(bytes, kJpeg)) return decode_jpeg(bytes, channels);
  if (begins(bytes, kPng)) return decode_png(bytes, channels);
  return tl::unexpected<std::string>(bytes.empty() ? "is empty"
                                                   : "is neither a JPEG nor a PNG image");
}

}  // namespace reckon::data
