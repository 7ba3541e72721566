#include "sim/step/network/fabric_graph.h"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/strong_components.hpp>

#include "sim/base/check.h"

namespace reckon {

std::vector<FabricGraph::Device> FabricGraph::add_devices(int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) devices.push_back(add_device());
  return devices;
}

std::vector<LinkId> FabricGraph::route(Device from, Device to) {
  if (searched_from_ != from) {
    reached_by_.assign(num_vertices(edges_), std::nullopt);
    const auto reached_by =
        boost::make_iterator_property_map(reached_by_.begin(), get(boost::vertex_index, edges_));
    boost::breadth_first_search(
        edges_, from,
        boost::visitor(boost::make_bfs_visitor(
            boost::record_edge_predecessors(reached_by, boost::on_tree_edge()))));
    searched_from_ = from;
  }
  std::vector<LinkId> links;
  for (Device at = to; at != from; at = source(*reached_by_[at], edges_)) {
    RECKON_CHECK(reached_by_[at].has_value());
    if (const auto link = edges_[*reached_by_[at]].link) links.push_back(*link);
  }
  std::ranges::reverse(links);
  return links;
}

bool FabricGraph::connected() const {
  std::vector<std::size_t> component(num_vertices(edges_));
  return boost::strong_components(
             edges_, boost::make_iterator_property_map(component.begin(),
                                                       get(boost::vertex_index, edges_))) <= 1;
}

}  // namespace reckon
