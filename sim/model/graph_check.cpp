#include "sim/model/graph_check.h"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/strong_components.hpp>
#include <utility>

namespace reckon {
namespace {

using Graph = boost::compressed_sparse_row_graph<boost::directedS>;

/// Edges run against the data, from a layer to what it takes: so a search from the loss finds all
/// that matters.
Graph graph_of(std::span<const Layer> layers) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (LayerId input : layers[i].inputs) {
      if (index(input) < layers.size()) edges.emplace_back(i, index(input));
    }
  }
  return Graph(boost::edges_are_sorted, edges.begin(), edges.end(), layers.size());
}

}  // namespace

std::vector<std::size_t> cycle_of(std::span<const Layer> layers, std::size_t i) {
  const Graph graph = graph_of(layers);
  std::vector<std::size_t> component(layers.size());
  boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
  std::vector<std::size_t> members{i};
  for (std::size_t j = 0; j < layers.size(); ++j) {
    if (j != i && component[j] == component[i]) members.push_back(j);
  }
  const bool takes_itself = boost::edge(i, i, graph).second;
  return members.size() > 1 || takes_itself ? members : std::vector<std::size_t>{};
}

std::vector<bool> leads_to(std::span<const Layer> layers, std::size_t loss) {
  const Graph graph = graph_of(layers);
  std::vector<boost::default_color_type> color(layers.size(), boost::white_color);
  const auto color_map =
      boost::make_iterator_property_map(color.begin(), get(boost::vertex_index, graph));
  boost::depth_first_visit(graph, loss, boost::dfs_visitor<>(), color_map);
  std::vector<bool> result(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) result[i] = color[i] != boost::white_color;
  return result;
}

}  // namespace reckon
