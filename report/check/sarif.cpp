#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "report/check/check.h"

namespace reckon {
namespace {

using Json = nlohmann::ordered_json;

/// A path as a relative reference of a URI [RFC 3986].
std::string uri_of(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

Json result(const char* rule, const char* level, const SourcePlace& at, const std::string& message,
            const std::string& file) {
  Json place{{"artifactLocation", {{"uri", uri_of(at.file.empty() ? file : at.file)}}}};
  if (at.line > 0) {
    place["region"] = {{"startLine", at.line}};
    if (at.column > 0) place["region"]["startColumn"] = at.column;
  }
  return {{"ruleId", rule},
          {"level", level},
          {"message", {{"text", message}}},
          {"locations", Json::array({Json{{"physicalLocation", std::move(place)}}})}};
}

Json rule(const char* id, const char* text) {
  return {{"id", id}, {"shortDescription", {{"text", text}}}};
}

}  // namespace

std::string check_sarif(std::span<const CheckedScenario> scenarios, std::string_view version) {
  Json results = Json::array();
  for (const CheckedScenario& s : scenarios) {
    for (const Diagnostic& d : s.errors)
      results.push_back(result("scenario", d.severity == Severity::error ? "error" : "warning",
                               d.at, d.hint.empty() ? d.what : d.what + "\n" + d.hint, s.file));
    for (const auto& e : s.expectations)
      if (!e.result.passed)
        results.push_back(result("expectation", e.failed() ? "error" : "note", e.at,
                                 fmt::format("{}: {}{}", e.result.text, value_text(e),
                                             e.failed() ? "" : "; " + drift_text(s, e)),
                                 s.file));
  }
  const Json driver{{"name", "reckon"},
                    {"version", version},
                    {"rules", Json::array({rule("expectation", "An expect: line holds."),
                                           rule("scenario", "A scenario can be read.")})}};
  const Json run{{"tool", {{"driver", driver}}}, {"results", std::move(results)}};
  const Json log{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                 {"version", "2.1.0"},
                 {"runs", Json::array({run})}};
  return log.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace reckon
