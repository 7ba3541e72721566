#include "sim/base/text/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

/// A control character that JSON has a short escape for, and the rest by number.
std::string escape_of(char32_t c) {
  switch (c) {
    case U'\n':
      return "\\n";
    case U'\r':
      return "\\r";
    case U'\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  }
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    if (length == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    else if (kept.find(character.front()) == kept.npos && is_control(code_point(character)))
      out += escape_of(code_point(character));
    else if (character == "[" && out.ends_with("##"))
      out += "\\u005b";
    else
      out += character;
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace

std::size_t utf8_length(std::string_view s) {
  const auto byte = [&](std::size_t i) {
    return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u;
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned b = byte(0);
  if (b < 0x80) return s.empty() ? 0 : 1;
  if (b >= 0xC2 && b <= 0xDF && tail(1)) return 2;
  if (b >= 0xE0 && b <= 0xEF && tail(1) && tail(2)) {
    const bool overlong = b == 0xE0 && byte(1) < 0xA0, surrogate = b == 0xED && byte(1) > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (b >= 0xF0 && b <= 0xF4 && tail(1) && tail(2) && tail(3)) {
    const bool overlong = b == 0xF0 && byte(1) < 0x90, beyond = b == 0xF4 && byte(1) > 0x8F;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

char32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) {
    return char32_t(static_cast<unsigned char>(character[i]));
  };
  if (character.size() == 1) return byte(0);
  constexpr char32_t kLeadBits[] = {0, 0, 0x1F, 0x0F, 0x07};
  char32_t c = byte(0) & kLeadBits[character.size()];
  for (std::size_t i = 1; i < character.size(); ++i) c = (c << 6U) | (byte(i) & 0x3FU);
  return c;
}

bool is_control(char32_t c) {
  const auto within = [c](char32_t low, char32_t high) { return c >= low && c <= high; };
  if (c < 0x20 || within(0x7F, 0x9F)) return true;
  if (within(0x2028, 0x2029) || c == 0xFEFF || within(0xFFFE, 0xFFFF)) return true;
  return c == 0x061C || within(0x200E, 0x200F) || within(0x202A, 0x202E) || within(0x2066, 0x2069);
}

std::string printable(std::string_view text) { return escaped(text, ""); }

std::string printable_lines(std::string_view text) { return escaped(text, "\n\t"); }

std::string printable_file(std::string_view name) {
  const std::size_t word = std::min(name.find_first_not_of(' '), name.size());
  return (name.substr(word).starts_with("::") ? "./" : "") + printable(name);
}

std::string as_file_name(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '/', '_');
  return out;
}

}  // namespace reckon
