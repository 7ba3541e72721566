#include "executor/train/run_request.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

namespace reckon {
namespace {

using RequestJson = nlohmann::ordered_json;

constexpr int kRequestVersion = 1;

}  // namespace

std::string text_digest(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string to_text(const RunRequest& request) {
  std::vector<std::string> layers;
  for (const auto& layer : request.layers) layers.push_back(layer.string());
  const RequestJson json{{"schema_version", kRequestVersion},
                         {"file", request.file.string()},
                         {"set", request.overrides},
                         {"layers", layers},
                         {"plan_xxh3", request.plan_digest}};
  return json.dump(2, ' ', false, RequestJson::error_handler_t::replace) + '\n';
}

Expected<RunRequest> parse_run_request(const std::filesystem::path& file, std::string_view text) {
  const auto wrong = [&](const char* what) {
    return tl::unexpected(Diagnostics{{Severity::error, {file.string(), 0, 0}, what, ""}});
  };
  const RequestJson json = RequestJson::parse(text, nullptr, false);
  if (!json.is_object()) return wrong("not the request of a run");
  if (json.value("schema_version", RequestJson()) != kRequestVersion)
    return wrong("the request is of another version of reckon");
  RunRequest request;
  try {
    request.file = json.at("file").get<std::string>();
    request.overrides = json.at("set").get<std::vector<std::string>>();
    for (const auto& layer : json.at("layers"))
      request.layers.emplace_back(layer.get<std::string>());
    if (const auto digest = json.find("plan_xxh3"); digest != json.end())
      request.plan_digest = digest->get<std::string>();
  } catch (const RequestJson::exception&) {
    return wrong("a key of the request is missing or of the wrong kind");
  }
  return request;
}

}  // namespace reckon
