#include "sim/base/text/shell_word.h"

#include <fmt/format.h>

#include <string_view>

#include "sim/base/text/printable.h"

namespace reckon {
namespace {

/// $'...': every byte that is no printable ASCII by its number, so that it is the same in every
/// locale.
std::string ansi_c_quoted(const std::string& text) {
  std::string quoted = "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\')
      quoted += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte >= 0x7F)
      quoted += fmt::format("\\{:03o}", byte);
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  if (printable(text) != text) return ansi_c_quoted(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_file(const std::string& name) {
  return shell_word(name.starts_with('-') ? "./" + name : name);
}

}  // namespace reckon
