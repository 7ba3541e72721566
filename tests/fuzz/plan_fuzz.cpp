#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan_file.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// Any text is a question of `reckon plan` or gives diagnostics. What the planner writes for a
// question it reads again: a scenario of the same name, without the freedom of the question, with
// the forecast.
namespace {

using namespace reckon;

const Catalog* catalog() {
  static const auto loaded = [] {
    const std::vector<std::filesystem::path> layers{RECKON_SOURCE_DIR "/catalogs"};
    return load_catalog(layers);
  }();
  return loaded ? &*loaded : nullptr;
}

void require(bool condition) {
  if (!condition) std::abort();
}

template <class T>
bool read(const Expected<T>& value) {
  if (!value) require(!format(value.error()).empty());
  return bool(value);
}

planner::RankedPlan some_plan(const Scenario& scenario) {
  planner::RankedPlan plan;
  plan.offer.region = scenario.cluster.region;
  plan.result.forecast.replications = 7;
  plan.result.forecast.seed = 3;
  plan.result.forecast.catalog_digest = catalog()->digest;
  return plan;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (catalog() == nullptr) std::abort();
  planner::Base base;
  base.text.assign(reinterpret_cast<const char*>(data), size);
  base.name = "/nowhere/question.yaml";
  const auto question = planner::make_question(base, *catalog());
  if (!read(question)) return 0;
  const Scenario& asked = question->file.scenario;
  const auto written =
      planner::plan_file(*question, some_plan(asked), Plan{}, "0.1.0", "/nowhere/plans");
  if (!read(written)) return 0;
  const auto file = parse_scenario(*written, "/nowhere/plans/plan.yaml");
  require(bool(file));
  require(!file->scenario.plan && file->scenario.planned);
  require(file->scenario.planned->seed == 3);
  require(file->scenario.name == asked.name);
  return 0;
}
