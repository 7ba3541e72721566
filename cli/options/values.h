#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/options/option.h"
#include "sim/base/quantity.h"
#include "sim/base/words.h"

// How fields of the common types are read. Each function keeps a reference to the field.
namespace reckon::cli {

namespace detail {
template <class T>
struct Held {
  using Type = T;
};
template <class T>
struct Held<std::optional<T>> {
  using Type = T;
};

/// Throws UsageError, as the functions below.
std::int64_t whole_number(const std::string& name, const std::string& text, std::int64_t low,
                          std::int64_t high);
Seconds duration(const std::string& name, const std::string& text);
[[noreturn]] void refuse_word(const std::string& name, const std::string& text,
                              const std::vector<std::string>& allowed);
}  // namespace detail

/// A switch.
Read given(bool& to);

/// Text, or optional text, as it is written.
template <class To>
Read text(To& to) {
  return [&to](const std::string&, const std::string& text) { to = text; };
}
Read texts(std::vector<std::string>& to);
Read paths(std::vector<std::filesystem::path>& to);
/// A file to write, or a regular file to read: an empty name is an unset variable of a script.
Read file_name(std::string& to);

/// A whole number, or an optional one, from `low` to `high`.
template <class To>
Read whole(To& to, std::int64_t low, std::int64_t high = std::numeric_limits<std::int64_t>::max()) {
  using Number = typename detail::Held<To>::Type;
  if constexpr (sizeof(Number) < sizeof(std::int64_t))
    high = std::min<std::int64_t>(high, std::numeric_limits<Number>::max());
  return [&to, low, high](const std::string& name, const std::string& text) {
    to = static_cast<Number>(detail::whole_number(name, text, low, high));
  };
}

/// A duration, or an optional one, not negative.
template <class To>
Read duration(To& to) {
  return [&to](const std::string& name, const std::string& text) {
    to = detail::duration(name, text);
  };
}

/// A value of an enum, or an optional one, by its words.
template <class To>
Read word(To& to) {
  using Enum = typename detail::Held<To>::Type;
  return [&to](const std::string& name, const std::string& text) {
    const auto value = from_text<Enum>(text);
    if (!value) detail::refuse_word(name, text, texts_of<Enum>());
    to = *value;
  };
}

/// "table|json": the words of an enum, for its OptionText.
template <HasWords Enum>
std::string words() {
  std::string out;
  for (const std::string& word : texts_of<Enum>()) out += (out.empty() ? "" : "|") + word;
  return out;
}

}  // namespace reckon::cli
