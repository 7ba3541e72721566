#include "sim/model/layer_graph.h"

#include <boost/graph/topological_sort.hpp>
#include <catch2/catch.hpp>
#include <iterator>

#include "sim/model/graph.h"
#include "support/zoo.h"

using namespace reckon;

namespace {

using Places = std::vector<std::size_t>;

/// Layers by what they take; their kinds do not matter here.
std::vector<Layer> taking(const std::vector<std::vector<std::uint32_t>>& inputs) {
  std::vector<Layer> layers(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (const std::uint32_t input : inputs[i]) layers[i].inputs.push_back(LayerId{input});
  return layers;
}

Places inputs_of(const LayerGraph& graph, std::size_t layer) {
  Places inputs;
  for (const auto edge : boost::make_iterator_range(out_edges(layer, graph.edges())))
    inputs.push_back(target(edge, graph.edges()));
  return inputs;
}
Places readers_of(const LayerGraph& graph, std::size_t layer) {
  Places readers;
  for (const auto edge : graph.readers(layer)) readers.push_back(source(edge, graph.edges()));
  return readers;
}
Places set_in(const std::vector<bool>& marks) {
  Places places;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (marks[i]) places.push_back(i);
  return places;
}
Places order_of(const LayerGraph& graph) {
  Places order;
  boost::topological_sort(graph.edges(), std::back_inserter(order));
  return order;
}

// 0 -> 1, 2 -> 3, which takes 2 before 1; nobody takes 4.
const std::vector<std::vector<std::uint32_t>> kDiamond{{}, {0}, {0}, {2, 1}, {1}};

}  // namespace

TEST_CASE("a layer's inputs stand in their order, its readers in theirs") {
  const LayerGraph graph(taking(kDiamond));
  CHECK(graph.size() == 5);
  CHECK(inputs_of(graph, 3) == Places{2, 1});
  CHECK(readers_of(graph, 0) == Places{1, 2});
  CHECK(readers_of(graph, 1) == Places{3, 4});
  CHECK(readers_of(graph, 3).empty());
}

TEST_CASE("an edge knows which input it is, also where a layer takes another twice") {
  const LayerGraph graph(taking({{}, {}, {0, 1, 0}}));
  Places places;
  for (const auto edge : graph.readers(0)) places.push_back(graph.edges()[edge].place);
  CHECK(places == Places{0, 2});
  for (const auto edge : graph.readers(1)) CHECK(graph.edges()[edge].place == 1);
}

TEST_CASE("ancestors of a layer are all from which a path leads to it, and no others") {
  const LayerGraph graph(taking(kDiamond));
  CHECK(set_in(graph.ancestors(3)) == Places{0, 1, 2, 3});
  CHECK(set_in(graph.ancestors(4)) == Places{0, 1, 4});
  CHECK(set_in(graph.ancestors(0)) == Places{0});
}

TEST_CASE("a search for ancestors ends where a layer does not pass on") {
  // 0 - 1 - 2 - 4 and 3 - 4 - 5, 1 - 6
  const LayerGraph graph(taking({{}, {0}, {1}, {}, {2, 3}, {4}, {1}}));
  const std::vector<std::size_t> ends{5, 6};
  const auto not_two = [](std::size_t layer) { return layer != 2; };
  CHECK(set_in(graph.ancestors(std::span(ends).first(1), not_two)) == Places{2, 3, 4, 5});
  CHECK(set_in(graph.ancestors(ends, not_two)) == Places{0, 1, 2, 3, 4, 5, 6});
  CHECK(set_in(graph.ancestors(ends, [](std::size_t) { return false; })) == Places{5, 6});
  CHECK(set_in(graph.ancestors({}, not_two)).empty());
}

TEST_CASE("layers on a cycle share a number, and only they") {
  // 1 - 2 - 3 - 1 is a cycle, 4 takes itself, 5 takes of both.
  const Places cycles = LayerGraph(taking({{}, {0, 3}, {1}, {2}, {4}, {3, 4}})).cycles();
  CHECK(cycles[1] == cycles[2]);
  CHECK(cycles[2] == cycles[3]);
  for (const std::size_t other : {0u, 4u, 5u}) CHECK(cycles[other] != cycles[1]);
  CHECK(cycles[0] != cycles[5]);
}

TEST_CASE("an input that is no layer has no edge") {
  const LayerGraph graph(taking({{}, {17, 0}}));
  CHECK(inputs_of(graph, 1) == Places{0});
  for (const auto edge : graph.readers(0)) CHECK(graph.edges()[edge].place == 1);
}

TEST_CASE("a topological order of layers that are out of order runs inputs first") {
  const Places order = order_of(LayerGraph(taking({{2}, {}, {1}})));
  CHECK(order == Places{1, 2, 0});
  CHECK_THROWS_AS(order_of(LayerGraph(taking({{1}, {0}}))), boost::not_a_dag);
}

TEST_CASE("a network hands out the graph of its layers, and copies share it") {
  const ModelGraph net = test::zoo("resnet50");
  const LayerGraph& graph = net.graph();
  REQUIRE(graph.size() == net.layers().size());
  Places as_they_stand;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    as_they_stand.push_back(i);
    Places inputs;
    for (const LayerId id : net.layers()[i].inputs) inputs.push_back(index(id));
    CHECK(inputs_of(graph, i) == inputs);
  }
  CHECK(order_of(graph) == as_they_stand);
  CHECK(set_in(graph.ancestors(graph.size() - 1)) == as_they_stand);
  const ModelGraph copy = net;
  CHECK(&copy.graph() == &graph);
}
