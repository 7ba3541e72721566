#pragma once
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/range/iterator_range.hpp>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "sim/model/layer.h"

// A network as a graph of Boost.Graph. Only sources that traverse one include this header: Boost's
// takes a second to compile.
namespace reckon {

/// What an edge knows beside its ends.
struct LayerInput {
  std::size_t place = 0;  // in Layer::inputs of its source
};

/// Vertex i is layer i. An edge leads from a layer to one that it takes, as from a target to what
/// it depends on: out_edges() are a layer's inputs in their order, in_edges() its readers in
/// theirs, and topological_sort() yields an order of execution. A layer that takes another twice
/// has two edges to it. Inputs that are no layer have no edge.
class LayerGraph {
 public:
  using Edges =
      boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property, LayerInput>;
  using Edge = Edges::edge_descriptor;

  explicit LayerGraph(std::span<const Layer> layers);
  /// Of `layers` layers, whatever holds them.
  LayerGraph(std::size_t layers,
             const std::function<std::span<const LayerId>(std::size_t)>& inputs_of);

  const Edges& edges() const { return edges_; }
  std::size_t size() const { return num_vertices(edges_); }
  /// The edges of those that take the layer: source(edge, edges()) is a reader.
  auto readers(std::size_t layer) const {
    return boost::make_iterator_range(in_edges(layer, edges_));
  }

  /// For each layer: is it one of `layers`, or does a path lead from it to one of them on which
  /// every other layer, that one included, satisfies `passes_on`?
  std::vector<bool> ancestors(std::span<const std::size_t> layers,
                              const std::function<bool(std::size_t)>& passes_on) const;
  /// The same of one layer, over all paths.
  std::vector<bool> ancestors(std::size_t layer) const;

  /// For each layer a number that it shares with those on a cycle with it, and with no others.
  std::vector<std::size_t> cycles() const;

 private:
  Edges edges_;
};

}  // namespace reckon
