#pragma once
#include <boost/graph/adjacency_list.hpp>
#include <optional>
#include <vector>

#include "sim/step/network/network.h"

namespace reckon {

/// Devices of a fabric (accelerators, ports, switches) and the connections between them, one for
/// each direction, as a graph of Boost.Graph: the links of a flow are found on it.
class FabricGraph {
 public:
  struct Connection {
    std::optional<LinkId> link;  // none: faster than all that it leads to
  };
  using Edges = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                      boost::no_property, Connection>;
  using Device = Edges::vertex_descriptor;

  Device add_device() {
    searched_from_.reset();
    return add_vertex(edges_);
  }
  std::vector<Device> add_devices(int count);
  /// One direction. Devices with several connections use the first.
  void connect(Device from, Device to, std::optional<LinkId> link = std::nullopt) {
    searched_from_.reset();
    add_edge(from, to, Connection{link}, edges_);
  }

  /// Links of the path of fewest connections, in their order; of several, those built first. There
  /// is a path. Remembers the search for the next route from the same device.
  std::vector<LinkId> route(Device from, Device to);

  /// Does every device reach every other?
  bool connected() const;
  const Edges& edges() const { return edges_; }

 private:
  Edges edges_;
  std::optional<Device> searched_from_;
  std::vector<std::optional<Edges::edge_descriptor>> reached_by_;  // by device, in that search
};

}  // namespace reckon
