#include "sim/base/text/base64.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace reckon {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kBytes = 3, kDigits = 4;  // of a group

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + kBytes - 1) / kBytes * kDigits);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kBytes, bytes.size()))) {
    const std::size_t have = std::min(kBytes, bytes.size());
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < kBytes; ++k)
      group = group << 8 | (k < have ? static_cast<unsigned char>(bytes[k]) : 0u);
    for (std::size_t k = 0; k < kDigits; ++k)
      text += k <= have ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % kDigits != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / kDigits * kBytes);
  for (; !text.empty(); text.remove_prefix(kDigits)) {
    const std::string_view group = text.substr(0, kDigits);
    std::size_t digits = kDigits;
    while (text.size() == kDigits && digits > 2 && group[digits - 1] == '=') --digits;
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < kDigits; ++k) {
      const std::size_t value = k < digits ? kAlphabet.find(group[k]) : 0;
      if (value == std::string_view::npos) return std::nullopt;
      bits = bits << 6 | static_cast<std::uint32_t>(value);
    }
    for (std::size_t k = 0; k < kBytes; ++k) {
      const char byte = static_cast<char>(bits >> (16 - 8 * k) & 255);
      if (k + 1 < digits)
        bytes += byte;
      else if (byte != 0)
        return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace reckon
