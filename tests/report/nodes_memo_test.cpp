#include <catch2/catch.hpp>

#include "report/queue/nodes.h"

using namespace reckon;

namespace {

/// 18 nodes keep the limit where 16 are there; a node costs 1,000 a week.
FewestNodes two_more_nodes() {
  FewestNodes found;
  found.pool = "a100";
  found.limit = parse_expectation("p95(wait) <= 12h").value();
  found.now = 16;
  found.fewest = 18;
  found.tried = {{16, {}, 80'000.0, false}, {18, {}, 40'000.0, true}};
  found.cost_now = 16'000;
  found.cost_of_week = 1'000;
  return found;
}

ChangeTried change_for(double cost_of_week, bool holds) {
  return {"cluster.pools.h100.nodes=9", std::nullopt, 30'000.0, holds, cost_of_week};
}

bool recommends(const FewestNodes& found, const std::string& what) {
  return nodes_memo(found, "").find("## Recommendation\n\n**" + what) != std::string::npos;
}

}  // namespace

TEST_CASE("the memo of a shared cluster recommends the cheapest change that keeps the limit") {
  FewestNodes found = two_more_nodes();
  CHECK(recommends(found, "18 nodes of pool a100**"));
  found.changes = {change_for(17'000, false), change_for(19'000, true)};
  CHECK(recommends(found, "18 nodes of pool a100**"));  // the one is too little, the other dearer
  found.changes.push_back(change_for(16'500, true));
  CHECK(recommends(found, "`cluster.pools.h100.nodes=9` on the 16 nodes"));
  CHECK(nodes_memo(found, "").find("for **+500 USD a week**") != std::string::npos);
  found.changes.push_back({"", SchedulingPolicy::sjf, 20'000.0, true, std::nullopt});
  CHECK(recommends(found, "Policy sjf on the 16 nodes"));  // which costs nothing
  found.fewest = 14;                                       // fewer are enough as it is
  CHECK(recommends(found, "14 nodes of pool a100**"));
}
