#include "executor/serve/predict_body.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace reckon {
namespace {

using Json = nlohmann::json;

/// False: something in it is no number.
bool flatten(const Json& value, std::vector<float>& out) {
  if (value.is_number()) {
    out.push_back(value.get<float>());
    return std::isfinite(out.back());
  }
  if (!value.is_array()) return false;
  for (const Json& item : value)
    if (!flatten(item, out)) return false;
  return true;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

tl::expected<std::vector<std::vector<float>>, std::string> parse_instances(std::string_view body) {
  const Json request = Json::parse(body, nullptr, false);
  if (request.is_discarded()) return tl::make_unexpected("the body is no JSON");
  if (!request.is_object() || !request.contains("instances"))
    return tl::make_unexpected("the body has no 'instances', such as {\"instances\": [[0.5, 1]]}");
  const Json& given = request["instances"];
  if (!given.is_array() || given.empty())
    return tl::make_unexpected("'instances' is no list with at least one instance");
  std::vector<std::vector<float>> instances;
  for (const Json& item : given) {
    instances.emplace_back();
    if (!flatten(item, instances.back()))
      return tl::make_unexpected(
          fmt::format("instance {} is not made of numbers alone", instances.size() - 1));
  }
  return instances;
}

std::string predictions_text(const std::vector<std::vector<float>>& answers) {
  std::string out = "{\"predictions\":[";
  for (std::size_t k = 0; k < answers.size(); ++k) {
    out += k == 0 ? "[" : ",[";
    for (std::size_t i = 0; i < answers[k].size(); ++i) {
      if (i > 0) out += ',';
      // JSON has no infinity.
      out += std::isfinite(answers[k][i]) ? fmt::format("{}", answers[k][i]) : "null";
    }
    out += ']';
  }
  return out + "]}\n";
}

std::string error_text(std::string_view what) { return dump({{"error", what}}); }

std::string status_text(std::int64_t version, bool ending) {
  const Json status = {{"version", std::to_string(version)},
                       {"state", ending ? "UNLOADING" : "AVAILABLE"},
                       {"status", {{"error_code", "OK"}, {"error_message", ""}}}};
  return dump({{"model_version_status", Json::array({status})}});
}

}  // namespace reckon
