#include "cli/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/output.h"

namespace reckon::cli {
namespace {

/// Of standard error, as a terminal's width is: mistakes are reported from everywhere.
ErrorFormat& format_of_errors() {
  static ErrorFormat format = ErrorFormat::text;
  return format;
}

std::string json_line(const Diagnostic& d, ErrorCode code) {
  using Json = nlohmann::ordered_json;
  const auto known = [](auto value, bool is) { return is ? Json(value) : Json(nullptr); };
  const Json json{{"schema_version", 1},
                  {"severity", d.severity == Severity::error ? "error" : "warning"},
                  {"code", to_text(code)},
                  {"file", known(d.at.file, !d.at.file.empty())},
                  {"line", known(d.at.line, d.at.line > 0)},
                  {"column", known(d.at.column, d.at.line > 0 && d.at.column > 0)},
                  {"message", d.what},
                  {"hint", known(d.hint, !d.hint.empty())}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace

void take_error_format(std::vector<std::string>& words) {
  constexpr std::string_view kOption = "--errors";
  const auto end = std::find(words.begin(), words.end(), "--");
  const auto given = std::find_if(words.begin(), end, [&](const std::string& word) {
    return word == kOption || word.starts_with(std::string(kOption) + "=");
  });
  if (given == end) return;
  const bool apart = *given == kOption;
  if (apart && given + 1 == end) throw UsageError("--errors takes text or json");
  const std::string value = apart ? *(given + 1) : given->substr(kOption.size() + 1);
  word(format_of_errors())("errors", value);
  words.erase(given, given + (apart ? 2 : 1));
}

std::string error_lines(const Diagnostics& diagnostics, ErrorCode code) {
  std::string lines;
  for (const Diagnostic& d : diagnostics) lines += json_line(d, code);
  return lines;
}

void report(const Diagnostics& diagnostics, ErrorCode code) {
  print_error(format_of_errors() == ErrorFormat::text ? format(diagnostics)
                                                      : error_lines(diagnostics, code));
}

void report(ErrorCode code, std::string_view what, std::string_view hint, const std::string& text) {
  if (format_of_errors() == ErrorFormat::text) return print_error(text);
  print_error(json_line({Severity::error, {}, std::string(what), std::string(hint)}, code));
}

}  // namespace reckon::cli
