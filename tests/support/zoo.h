#pragma once
#include <catch2/catch.hpp>

#include "sim/model/zoo/zoo.h"

// Networks of the zoo, and layers of them by name, that a test takes for granted.
namespace reckon::test {

inline ModelGraph zoo(std::string_view name, std::optional<std::int64_t> sequence_length = {}) {
  std::optional<ModelGraph> graph = zoo_model(name, sequence_length);
  REQUIRE(graph.has_value());
  return *graph;
}

inline const Layer& layer(const ModelGraph& graph, std::string_view name) {
  for (const Layer& l : graph.layers())
    if (l.name == name) return l;
  FAIL("no layer " << name);
  throw;
}

}  // namespace reckon::test
