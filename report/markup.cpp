#include "report/markup.h"

#include <algorithm>

#include "sim/base/text/printable.h"

namespace reckon {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Of one character.
std::string_view reference_of(std::string_view character) {
  switch (character.front()) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    case '\n':
      return "&#10;";
    case '\r':
      return "&#13;";
    case '\t':
      return "&#9;";
    default:
      break;
  }
  const char32_t c = code_point(character);
  return c < 0x20 || c == 0xFFFE || c == 0xFFFF ? kReplacement : character;
}

}  // namespace

std::string markup_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out += length == 0 ? kReplacement : reference_of(text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace reckon
