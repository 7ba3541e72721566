#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/artifact/json.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// Plans of runs that were changed: as bytes, which the digests refuse, and as JSON behind them,
// which the reader has to look through by itself. What is read can be written, and reads as the
// same.
namespace {

using namespace reckon;
using artifact::Json;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

const RunArtifact& whole() {
  static const RunArtifact one = [] {
    const std::filesystem::path root(RECKON_SOURCE_DIR);
    const std::array layers{root / "catalogs"};
    auto catalog = load_catalog(layers);
    auto file = read_scenario(root / "scenarios" / "small-mlp-cpu.yaml");
    require(catalog && file, "the shipped catalog and scenario are read");
    auto plan = make_plan(*file, *catalog);
    require(plan.has_value(), "the shipped scenario has a plan");
    return RunArtifact{.plan = std::move(*plan)};
  }();
  return one;
}

void all_of(Json& json, std::vector<Json*>& found) {
  found.push_back(&json);
  if (json.is_structured())
    for (Json& item : json) all_of(item, found);
}

Json other(std::uint8_t kind) {
  switch (kind % 16) {
    case 0:
      return nullptr;
    case 1:
      return true;
    case 2:
      return -1;
    case 3:
      return 0;
    case 4:
      return 1e300;
    case 5:
      return std::uint64_t{18446744073709551615u};
    case 6:
      return "";
    case 7:
      return "none";
    case 8:
      return Json::array();
    case 9:
      return Json::object();
    case 10:
      return Json::array({"Add", Json::object()});
    case 11:
      return Json::array({1, 0});
    case 12:
      return "inf";
    case 13:
      return 2;
    case 14:
      return Json::array({0, 1});
    default:
      return kind;
  }
}

/// Three bytes a change: which value, in two, and what it becomes.
Json changed(std::span<const std::uint8_t> script) {
  Json json = artifact::json_of(whole());
  constexpr std::size_t kOrder = 3;
  for (; script.size() >= kOrder; script = script.subspan(kOrder)) {
    std::vector<Json*> values;
    all_of(json, values);
    Json& value = *values[(script[0] * 256u + script[1]) % values.size()];
    if (script[2] >= 250 && value.is_structured() && !value.empty())
      value.erase(value.begin());
    else
      value = other(script[2]);
  }
  return json;
}

void check_round_trip(const RunArtifact& artifact) {
  const auto again = read_artifact(write_artifact(artifact), "fuzz");
  require(again.has_value(), "what was read and written cannot be read");
  require(again->digest == artifact_digest(artifact), "what was read and written is another plan");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  if (data[0] == 'r') {  // raw
    const std::string bytes(rest.begin(), rest.end());
    const auto read = read_artifact(bytes, "fuzz");
    require(read || !format(read.error()).empty(), "a refusal says nothing");
    return 0;
  }
  const Json json = data[0] == '{' ? Json::parse(data, data + size, nullptr, false) : changed(rest);
  if (json.is_discarded()) return 0;
  const auto read = artifact::artifact_of(json, "fuzz");
  if (read)
    check_round_trip(*read);
  else
    require(!read.error().empty(), "a refusal says nothing");
  return 0;
}
