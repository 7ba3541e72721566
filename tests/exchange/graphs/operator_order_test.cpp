#include "exchange/graphs/operator_order.h"

#include <catch2/catch.hpp>

using namespace reckon;
using Catch::Matchers::Contains;

namespace {

using Order = std::vector<std::size_t>;

GraphNode op(std::vector<std::string> inputs, std::vector<std::string> outputs,
             std::string kind = "Relu") {
  return {.name = outputs.front() + "_op",
          .kind = std::move(kind),
          .inputs = std::move(inputs),
          .outputs = std::move(outputs)};
}

/// From "x" to "y".
OperatorGraph graph_with(std::vector<GraphNode> nodes) {
  OperatorGraph graph;
  graph.name = "net";
  graph.inputs = {"x"};
  graph.outputs = {"y"};
  graph.nodes = std::move(nodes);
  return graph;
}

Order order_in(const OperatorGraph& graph) {
  const auto order = needed_operators(graph);
  if (!order) FAIL(format(order.error()));
  return *order;
}

std::string cycle_in(std::vector<GraphNode> nodes) {
  const auto order = needed_operators(graph_with(std::move(nodes)));
  REQUIRE_FALSE(order.has_value());
  return format(order.error());
}

}  // namespace

TEST_CASE("operators in order keep it, and what the output does not need is left out") {
  // A diamond, and two that lead nowhere.
  const OperatorGraph graph =
      graph_with({op({"x"}, {"a"}), op({"a"}, {"unused"}), op({"a"}, {"b"}), op({"a"}, {"c"}),
                  op({"c", "b"}, {"y"}, "Add"), op({"y"}, {"after"})});
  CHECK(order_in(graph) == Order{0, 2, 3, 4});
}

TEST_CASE("operators that stand before what they take are put behind it") {
  const OperatorGraph graph = graph_with({op({"b"}, {"y"}), op({"a"}, {"b"}), op({"x"}, {"a"})});
  CHECK(order_in(graph) == Order{2, 1, 0});
}

TEST_CASE("an operator that asks for a shape does not need its value") {
  const OperatorGraph graph =
      graph_with({op({"x"}, {"a"}), op({"a"}, {"s"}, "Shape"), op({"x", "s"}, {"y"}, "Reshape")});
  CHECK(order_in(graph) == Order{1, 2});
}

TEST_CASE("operators that take each other's values are named") {
  CHECK_THAT(cycle_in({op({"x"}, {"z"}), op({"z", "y"}, {"a"}), op({"a"}, {"y"})}),
             Contains("operators take each other's values: a_op, y_op") &&
                 Contains("a graph has no cycles") && !Contains("z_op"));
  CHECK_THAT(cycle_in({op({"x", "y"}, {"y"})}), Contains("values: y_op"));
}

TEST_CASE("of a value that is made twice each operator takes the last before it") {
  const OperatorGraph graph = graph_with(
      {op({"x"}, {"a"}), op({"a"}, {"b"}), op({"x"}, {"a"}), op({"b", "a"}, {"y"}, "Add")});
  CHECK(order_in(graph) == Order{0, 1, 2, 3});
  // What is given with the graph is taken from there by those before the operator that makes it.
  OperatorGraph given = graph_with({op({"w"}, {"a"}), op({"x"}, {"w"}), op({"a"}, {"y"})});
  given.weights["w"] = {4};
  CHECK(order_in(given) == Order{0, 2});
}

TEST_CASE("a file's order of operators does not change its network") {
  OperatorGraph graph = graph_with(
      {op({"x", "w"}, {"a"}, "MatMul"), op({"a"}, {"b"}), op({"b", "v"}, {"y"}, "MatMul")});
  graph.weights = {{"w", {8, 6}}, {"v", {6, 3}}};
  graph.values = {{"x", {1, 8}}, {"a", {1, 6}}, {"b", {1, 6}}, {"y", {1, 3}}};
  const auto sorted = make_graph_model(graph);
  if (!sorted) FAIL(format(sorted.error()));
  CHECK(sorted->model.parameters() == 48 + 18);
  std::ranges::reverse(graph.nodes);
  const auto reversed = make_graph_model(graph);
  if (!reversed) FAIL(format(reversed.error()));
  REQUIRE(reversed->model.layers().size() == sorted->model.layers().size());
  for (std::size_t i = 0; i < sorted->model.layers().size(); ++i)
    CHECK(reversed->model.layers()[i].name == sorted->model.layers()[i].name);
  CHECK(reversed->model.parameters() == 48 + 18);
}
