#pragma once
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/launch/foreign_job.h"
#include "executor/launch/progress_reader.h"

namespace reckon::test {

/// The reader of a container's `metrics`, as a scenario says them.
inline ProgressReader reader_of(std::map<std::string, std::string> metrics) {
  ContainerSpec container;
  container.metrics = std::move(metrics);
  std::vector<MetricsMistake> mistakes;
  auto reader = ProgressReader::from(container_metrics(container, mistakes));
  CHECK(mistakes.empty());
  REQUIRE(reader);
  return std::move(*reader);
}

}  // namespace reckon::test
