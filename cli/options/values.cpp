#include "cli/options/values.h"

#include <fmt/format.h>

#include "cli/options/usage_error.h"
#include "sim/base/diagnostic.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace detail {

std::int64_t whole_number(const std::string& name, const std::string& text, std::int64_t low,
                          std::int64_t high) {
  const auto value = parse_integer(text);
  if (value && *value >= low && *value <= high) return *value;
  const bool bounded = high < std::numeric_limits<std::int32_t>::max();
  throw UsageError(fmt::format("--{} takes a whole number from {} {}, not '{}'", name, low,
                               bounded ? fmt::format("to {}", high) : "on", text));
}

Seconds duration(const std::string& name, const std::string& text) {
  const auto value = parse_duration(text);
  if (!value) throw UsageError(fmt::format("--{}: {}", name, value.error()));
  if (value->count() < 0) throw UsageError(fmt::format("--{} is negative", name));
  return *value;
}

void refuse_word(const std::string& name, const std::string& text,
                 const std::vector<std::string>& allowed) {
  throw UsageError(fmt::format("--{} takes {}, not '{}'{}", name, fmt::join(allowed, " or "), text,
                               did_you_mean(text, allowed)));
}

}  // namespace detail

Read given(bool& to) {
  return [&to](const std::string&, const std::string&) { to = true; };
}

Read texts(std::vector<std::string>& to) {
  return [&to](const std::string&, const std::string& text) { to.push_back(text); };
}

Read paths(std::vector<std::filesystem::path>& to) {
  return [&to](const std::string&, const std::string& text) { to.emplace_back(text); };
}

Read file_name(std::string& to) {
  return [&to](const std::string& name, const std::string& text) {
    if (text.empty()) throw UsageError(fmt::format("--{} needs the name of a file", name));
    to = text;
  };
}

}  // namespace reckon::cli
