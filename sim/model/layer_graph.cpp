#include "sim/model/layer_graph.h"

#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/strong_components.hpp>
#include <utility>

namespace reckon {
namespace {

using Edges = LayerGraph::Edges;

Edges edges_of(std::size_t layers,
               const std::function<std::span<const LayerId>(std::size_t)>& inputs_of) {
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  std::vector<LayerInput> places;
  for (std::size_t i = 0; i < layers; ++i) {
    const std::span<const LayerId> inputs = inputs_of(i);
    for (std::size_t place = 0; place < inputs.size(); ++place) {
      if (index(inputs[place]) >= layers) continue;
      ends.emplace_back(i, index(inputs[place]));
      places.push_back({place});
    }
  }
  return Edges(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), places.begin(),
               layers);
}

}  // namespace

LayerGraph::LayerGraph(std::size_t layers,
                       const std::function<std::span<const LayerId>(std::size_t)>& inputs_of)
    : edges_(edges_of(layers, inputs_of)) {}

LayerGraph::LayerGraph(std::span<const Layer> layers)
    : LayerGraph(layers.size(),
                 [&](std::size_t i) { return std::span<const LayerId>(layers[i].inputs); }) {}

std::vector<bool> LayerGraph::ancestors(std::span<const std::size_t> layers,
                                        const std::function<bool(std::size_t)>& passes_on) const {
  std::vector<boost::default_color_type> color(size(), boost::white_color);
  const auto colors =
      boost::make_iterator_property_map(color.begin(), get(boost::vertex_index, edges_));
  const auto ends_here = [&](std::size_t layer, const Edges&) { return !passes_on(layer); };
  for (const std::size_t layer : layers) {
    if (color[layer] == boost::white_color)
      boost::depth_first_visit(edges_, layer, boost::dfs_visitor<>(), colors, ends_here);
  }
  std::vector<bool> met(size());
  for (std::size_t i = 0; i < size(); ++i) met[i] = color[i] != boost::white_color;
  return met;
}

std::vector<bool> LayerGraph::ancestors(std::size_t layer) const {
  return ancestors(std::span(&layer, 1), [](std::size_t) { return true; });
}

std::vector<std::size_t> LayerGraph::cycles() const {
  std::vector<std::size_t> component(size());
  boost::strong_components(edges_, boost::make_iterator_property_map(
                                       component.begin(), get(boost::vertex_index, edges_)));
  return component;
}

}  // namespace reckon
