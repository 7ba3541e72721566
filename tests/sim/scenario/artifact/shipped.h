#pragma once
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exchange/model_files.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/resolve/serving.h"
#include "support/plans.h"
#include "support/scenario_text.h"

// The artifacts of the scenarios that we ship.
namespace reckon::test {

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Shipped {
  std::string name;
  RunArtifact artifact;
};

/// Every scenario of scenarios/ that trains something.
inline const std::vector<Shipped>& shipped() {
  static const std::vector<Shipped> all = [] {
    std::vector<Shipped> made;
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(
             std::filesystem::path(RECKON_SOURCE_DIR) / "scenarios"))
      if (entry.path().extension() == ".yaml") files.insert(entry.path());
    for (const std::filesystem::path& file : files) {
      auto scenario = read_scenario(file);
      REQUIRE(scenario);
      if (scenario->scenario.of_queue() || !trains(scenario->scenario)) continue;
      REQUIRE(resolve_model_files(*scenario).empty());
      auto plan = make_plan(*scenario, shipped_catalog());
      INFO(file << (plan ? "" : format(plan.error())));
      REQUIRE(plan);
      RunArtifact artifact;
      artifact.plan = std::move(*plan);
      if (scenario->scenario.workload) artifact.container = scenario->scenario.workload->container;
      artifact.file = file.string();
      artifact.scenario = flat_scenario(read_text(file), file.string(), {}, {}, {}).value();
      made.push_back({file.stem().string(), std::move(artifact)});
    }
    return made;
  }();
  return all;
}

}  // namespace reckon::test
