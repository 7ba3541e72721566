#pragma once
#include <catch2/catch.hpp>
#include <string>

#include "exchange/kubernetes/kubernetes.h"
#include "sim/base/text/base64.h"
#include "support/shipped_catalog.h"

namespace reckon::test {

inline RunArtifact artifact_for_cluster(const ScenarioFile& file, const Plan& plan) {
  RunArtifact artifact{.plan = plan, .scenario = "name: short\n"};
  if (file.scenario.workload) artifact.container = file.scenario.workload->container;
  return for_cluster(std::move(artifact), shipped_catalog());
}

/// Manifests with a word in place of their artifact, which changes with every number of the
/// catalog. It is one.
inline std::string without_plan(std::string yaml) {
  const std::string key = "plan.reckon: ";
  const std::size_t at = yaml.find(key) + key.size(), end = yaml.find('\n', at);
  REQUIRE(at >= key.size());
  std::string word = yaml.substr(at, end - at);
  std::erase(word, '"');
  const auto bytes = from_base64(word);
  REQUIRE(bytes);
  REQUIRE(read_artifact(*bytes, "plan.reckon"));
  return yaml.replace(at, end - at, "ARTIFACT");
}

}  // namespace reckon::test
