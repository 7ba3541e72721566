#include "report/explain/node_ranking.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("nodes are ranked by the median behind the warm-up, and the slow one stands out") {
  const auto steps = [](double first, double each) {
    std::vector<double> all{first, first};
    for (int k = 0; k < 8; ++k) all.push_back(each);
    return all;
  };
  const auto nodes = ranked({{"slow", steps(9, 0.12), ""},
                             {"broken", {}, "ended with code 3"},
                             {"fast", steps(1, 0.099), ""},
                             {"usual", steps(1, 0.1), ""},
                             {"other", steps(1, 0.1), ""}});
  REQUIRE(nodes.size() == 5);
  CHECK(nodes[0].node == "fast");
  CHECK(!nodes[0].stands_out);
  CHECK(nodes[3].node == "slow");
  CHECK(nodes[3].stands_out);
  CHECK(nodes[3].slower == Approx(0.2));  // of the median of all nodes, 0.1 s
  CHECK(nodes[3].steps == 8);
  CHECK(nodes[4].problem == "ended with code 3");
  const std::string table = node_table(nodes);
  CHECK(table.find("+20.0 %") != std::string::npos);
  CHECK(table.find("slow: a gang would wait for it") != std::string::npos);
  CHECK(node_json(nodes).find("\"step_seconds\": null") != std::string::npos);
}
