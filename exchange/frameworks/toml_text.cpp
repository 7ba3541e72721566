#include "exchange/frameworks/toml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/check.h"

namespace reckon {
namespace {

using Json = nlohmann::ordered_json;

/// JSON's texts, numbers, truths and lists are TOML's, but for DEL, which TOML wants escaped. A
/// number such as 1e-05 is one of both.
std::string value_text(const Json& value) {
  RECKON_CHECK(!value.is_null());
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = text.find('\x7f'); at != std::string::npos; at = text.find('\x7f', at))
    text.replace(at, 1, "\\u007f");
  return text;
}

void write_table(std::string& out, const std::string& name, const Json& table) {
  const bool has_values =
      std::any_of(table.begin(), table.end(), [](const Json& v) { return !v.is_object(); });
  if (!name.empty() && (has_values || table.empty()))
    out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", name);
  for (const auto& [key, value] : table.items())
    if (!value.is_object()) out += fmt::format("{} = {}\n", key, value_text(value));
  for (const auto& [key, value] : table.items())
    if (value.is_object())
      write_table(out, name.empty() ? key : fmt::format("{}.{}", name, key), value);
}

}  // namespace

std::string toml_text(const Json& value) {
  std::string out;
  write_table(out, "", value);
  return out;
}

}  // namespace reckon
