#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// Any text is a scenario or gives diagnostics; of a scenario the plan is or gives them as well.
namespace {

const reckon::Catalog* catalog() {
  static const auto loaded = [] {
    const std::vector<std::filesystem::path> layers{RECKON_SOURCE_DIR "/catalogs"};
    return reckon::load_catalog(layers);
  }();
  return loaded ? &*loaded : nullptr;
}

void require_said(const reckon::Diagnostics& diagnostics) {
  if (reckon::format(diagnostics).empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto scenario = reckon::parse_scenario(text, "/nowhere/fuzz.yaml");
  if (!scenario) {
    require_said(scenario.error());
    return 0;
  }
  if (catalog() == nullptr) std::abort();
  const auto plan = reckon::make_plan(*scenario, *catalog());
  if (!plan) require_said(plan.error());
  return 0;
}
