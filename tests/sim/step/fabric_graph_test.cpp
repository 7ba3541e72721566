#include "sim/step/network/fabric_graph.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <catch2/catch.hpp>

#include "support/fabrics.h"

using namespace reckon;
using namespace reckon::test;

namespace {

using Numbers = std::vector<std::size_t>;

Numbers numbers_of(std::span<const LinkId> links) {
  Numbers numbers;
  for (const LinkId link : links) numbers.push_back(index(link));
  return numbers;
}

/// Most transfers of an activity graph that follow one another: the longest path in it.
int longest_chain(const ActivityGraph& graph) {
  using Waits =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                            boost::property<boost::edge_weight_t, int>>;
  const std::size_t count = graph.activities().size(), start = count;
  Waits waits(count + 1);
  for (std::size_t a = 0; a < count; ++a) {
    const int less = graph.activities()[a].size.v > 0 ? -1 : 0;
    add_edge(start, a, less, waits);
    for (const ActivityId before : graph.waits_for(ActivityId(a)))
      add_edge(index(before), a, less, waits);
  }
  std::vector<int> length(count + 1);
  boost::dag_shortest_paths(waits, start,
                            boost::distance_map(boost::make_iterator_property_map(
                                length.begin(), get(boost::vertex_index, waits))));
  return -*std::min_element(length.begin(), length.end());
}

}  // namespace

TEST_CASE("a route takes the fewest connections and lists the links of those that have one") {
  // a - 0 - b - 1 - c, and a - d - 2 - e - c without links at both ends: one connection more.
  FabricGraph fabric;
  const auto at = fabric.add_devices(5);
  const auto a = at[0], b = at[1], c = at[2], d = at[3], e = at[4];
  fabric.connect(a, b, LinkId{0});
  fabric.connect(b, c, LinkId{1});
  fabric.connect(a, d);
  fabric.connect(d, e, LinkId{2});
  fabric.connect(e, c);
  CHECK(numbers_of(fabric.route(a, c)) == Numbers{0, 1});
  CHECK(numbers_of(fabric.route(a, e)) == Numbers{2});
  CHECK(fabric.route(a, a).empty());
  // Of two as short, the one built first; what is built after a search is found too.
  fabric.connect(a, b, LinkId{3});
  CHECK(numbers_of(fabric.route(a, b)) == Numbers{0});
  fabric.connect(a, c, LinkId{4});
  CHECK(numbers_of(fabric.route(a, c)) == Numbers{4});
}

TEST_CASE("a fabric is connected where every device reaches every other, both ways") {
  FabricGraph fabric;
  const auto ring = fabric.add_devices(3);
  fabric.connect(ring[0], ring[1], LinkId{0});
  fabric.connect(ring[1], ring[2], LinkId{1});
  CHECK_FALSE(fabric.connected());
  fabric.connect(ring[2], ring[0], LinkId{2});
  CHECK(fabric.connected());
  CHECK(numbers_of(fabric.route(ring[0], ring[2])) == Numbers{0, 1});
  fabric.add_device();
  CHECK_FALSE(fabric.connected());
}

TEST_CASE("flows of an all-to-all cross the links that lie between their ranks, and no others") {
  // 5 nodes of 2 ranks below leaves of 2, 2 and 1 nodes. Links in pairs, out and in: of ranks from
  // 0, of nodes from 20, of leaves from 30.
  Fabric f = flat(5, 2);
  f.leaf_nodes = 2;
  f.oversubscription = 4;
  for (const int rails : {1, 2}) {
    f.rails = rails;
    const Collective c = all_to_all(f, Bytes{1e6}, false);
    const NetworkProblem& p = c.phases.front();
    REQUIRE(p.network.links().size() == 36);
    std::size_t flow = 0;
    for (std::size_t from = 0; from < 10; ++from)
      for (std::size_t to = 0; to < 10; ++to) {
        if (from == to) continue;
        CAPTURE(rails, from, to);
        Numbers expected;
        const std::size_t a = from / 2, b = to / 2;
        // The rank beside it is on the other rail.
        if (a != b && rails == 2 && from % 2 != to % 2) expected = {2 * from, 2 * (from ^ 1) + 1};
        if (a == b) {
          expected = {2 * from, 2 * to + 1};
        } else {
          expected.push_back(20 + 2 * a);
          if (a / 2 != b / 2) {
            expected.push_back(30 + 2 * (a / 2));
            expected.push_back(30 + 2 * (b / 2) + 1);
          }
          expected.push_back(20 + 2 * b + 1);
        }
        CHECK(numbers_of(p.network.path(p.graph.activities()[flow++].path)) == expected);
      }
    CHECK(flow == p.graph.activities().size());
  }
}

TEST_CASE("the steps of a collective are the longest chain of transfers in its graph") {
  for (const auto& [nodes, ranks] : {std::pair{1, 4}, {3, 1}, {3, 4}, {4, 2}}) {
    CAPTURE(nodes, ranks);
    const Fabric f = flat(nodes, ranks);
    for (const auto collective :
         {ring_all_reduce, ring_all_gather, hierarchical_all_reduce, ring_hop, all_to_all}) {
      const Collective c = collective(f, Bytes{1e6}, false);
      REQUIRE(c.phases.size() == 1);
      CHECK(longest_chain(c.phases.front().graph) == c.steps);
    }
  }
  for (const bool wraps : {true, false}) {
    const Fabric torus =
        torus_fabric(std::vector{4, 3, 2}, wraps, BytesPerSecond{1e9}, Seconds{1e-6});
    const Collective c = torus_all_reduce(torus, Bytes{1e6}, false);
    CHECK(longest_chain(c.phases.front().graph) == c.steps);
  }
}
