#include "exchange/graphs/operator_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "exchange/graphs/operator_layers.h"

namespace reckon {
namespace {

/// Vertex i is operator i; an edge leads to the operator that makes what it takes.
using OperatorEdges = boost::compressed_sparse_row_graph<boost::directedS>;

class OperatorSorter {
 public:
  explicit OperatorSorter(const OperatorGraph& graph)
      : nodes_(graph.nodes), graph_(graph), inputs_(graph.inputs.begin(), graph.inputs.end()) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (const std::string& output : nodes_[i].outputs)
        if (!output.empty()) makers_[output].push_back(i);
    std::vector<std::pair<std::size_t, std::size_t>> ends;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (const std::string& input : nodes_[i].inputs)
        if (const auto maker = maker_of(input, i)) ends.emplace_back(i, *maker);
    edges_ = OperatorEdges(boost::edges_are_sorted, ends.begin(), ends.end(), nodes_.size());
  }

  Expected<std::vector<std::size_t>> needed() const {
    std::vector<std::size_t> order;
    try {
      boost::topological_sort(edges_, std::back_inserter(order));
    } catch (const boost::not_a_dag&) {
      return tl::unexpected<Diagnostics>(Diagnostics{cycle()});
    }
    const auto color = from_outputs();
    std::erase_if(order, [&](std::size_t i) { return color[i] == boost::white_color; });
    return order;
  }

 private:
  /// The last before operator `i` that makes the value, or the first behind it where the value
  /// comes from nowhere else.
  std::optional<std::size_t> maker_of(const std::string& value, std::size_t i) const {
    const auto found = makers_.find(value);
    if (found == makers_.end()) return std::nullopt;
    const std::vector<std::size_t>& makers = found->second;
    const auto behind = std::ranges::lower_bound(makers, i);
    if (behind != makers.begin()) return *std::prev(behind);
    const bool given = graph_.weights.contains(value) || graph_.constants.contains(value) ||
                       inputs_.contains(value);
    return given ? std::nullopt : std::optional(*behind);
  }

  /// Colours of a search from the outputs: white is what they do not need.
  std::vector<boost::default_color_type> from_outputs() const {
    std::vector<boost::default_color_type> color(nodes_.size(), boost::white_color);
    const auto colors =
        boost::make_iterator_property_map(color.begin(), get(boost::vertex_index, edges_));
    const auto asks_shape = [&](std::size_t i, const OperatorEdges&) {
      return is_shape_kind(nodes_[i].kind);
    };
    for (const std::string& output : graph_.outputs) {
      const auto maker = maker_of(output, nodes_.size());
      if (maker && color[*maker] == boost::white_color)
        boost::depth_first_visit(edges_, *maker, boost::dfs_visitor<>(), colors, asks_shape);
    }
    return color;
  }

  /// Of one of the cycles, its operators.
  Diagnostic cycle() const {
    std::vector<std::size_t> component(nodes_.size());
    boost::strong_components(edges_, boost::make_iterator_property_map(
                                         component.begin(), get(boost::vertex_index, edges_)));
    std::vector<std::size_t> sizes(nodes_.size());
    for (const std::size_t c : component) ++sizes[c];
    std::size_t first = 0;
    while (sizes[component[first]] == 1 && !boost::edge(first, first, edges_).second) ++first;
    constexpr std::size_t kMost = 10;
    std::vector<std::string_view> names;
    for (std::size_t i = first; i < nodes_.size() && names.size() < kMost; ++i)
      if (component[i] == component[first])
        names.push_back(nodes_[i].name.empty() ? nodes_[i].kind : nodes_[i].name);
    return {.what = fmt::format("operators take each other's values: {}{}", fmt::join(names, ", "),
                                sizes[component[first]] > kMost ? ", ..." : ""),
            .hint = "a graph has no cycles"};
  }

  const std::vector<GraphNode>& nodes_;
  const OperatorGraph& graph_;
  std::set<std::string_view> inputs_;
  std::map<std::string_view, std::vector<std::size_t>> makers_;  // of a value, ascending
  OperatorEdges edges_;
};

}  // namespace

Expected<std::vector<std::size_t>> needed_operators(const OperatorGraph& graph) {
  return OperatorSorter(graph).needed();
}

}  // namespace reckon
