#include "exchange/graphs/operator_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

Diagnostics check_operators(const OperatorGraph& graph) {
  constexpr std::size_t kMostNodes = 200'000, kMostErrors = 20;
  Diagnostics errors;
  const auto error = [&](std::string what, std::string hint = {}) {
    if (errors.size() < kMostErrors)
      errors.push_back({.what = std::move(what), .hint = std::move(hint)});
  };
  if (graph.nodes.size() > kMostNodes) {
    error(fmt::format("the graph has {} operators", graph.nodes.size()),
          fmt::format("{} can be read", kMostNodes));
    return errors;
  }
  if (graph.inputs.empty()) error("the graph has no input", "an input has a shape");
  if (graph.outputs.empty()) error("the graph has no output");
  for (const std::string& input : graph.inputs) {
    const auto shape = graph.values.find(input);
    if (shape == graph.values.end()) {
      error(fmt::format("the shape of input '{}' is not known", input));
    } else if (shape->second.empty() || shape->second.front() != 1) {
      error(fmt::format("input '{}' is {}: its first axis is no batch of one", input,
                        to_text(shape->second)),
            "export the graph for one sample");
    } else if (std::ranges::any_of(shape->second, [](std::int64_t n) { return n < 1; })) {
      error(fmt::format("input '{}' is {}", input, to_text(shape->second)));
    }
  }
  return errors;
}

}  // namespace reckon
