#include "report/sweep/sweep.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "report/example_forecast.h"
#include "support/golden.h"

using namespace reckon;

namespace {

SweepPoint point(std::string nodes, double hours, double usd) {
  Forecast f = test::example_forecast();
  const double s = hours * 3600;
  f.time_seconds = {s, 0.9 * s, s, 1.1 * s};
  f.cost_usd = Quantiles{usd, 0.9 * usd, usd, 1.1 * usd};
  return {{std::move(nodes), "spot"}, f, ""};
}

Sweep sweep_example() {
  Sweep s{"example", {"cluster.pools.p100.nodes", "cluster.pools.p100.pricing"}, {}};
  s.points = {point("2", 40, 300), point("4", 20, 310), point("8", 20, 500)};
  s.points.push_back({{"16", "spot"}, std::nullopt, "16 nodes, \"8\" at most"});
  return s;
}

}  // namespace

TEST_CASE("a sweep marks the fastest and the cheapest point, the first of equals") {
  Sweep s = sweep_example();
  CHECK(fastest(s) == 1u);
  CHECK(cheapest(s) == 0u);
  for (SweepPoint& p : s.points)
    if (p.forecast) p.forecast->cost_usd.reset();
  CHECK_FALSE(cheapest(s));  // a price is unknown
  s.points.erase(s.points.begin(), s.points.end() - 1);
  CHECK_FALSE(fastest(s));
}

TEST_CASE("a sweep's table has a row a point, and the reason of those that cannot be") {
  test::check_golden("report/golden/sweep.txt", sweep_table(sweep_example()));
}

TEST_CASE("a sweep's CSV quotes what needs it and leaves empty what is unknown") {
  const std::string csv = sweep_csv(sweep_example());
  test::check_golden("report/golden/sweep.csv", csv);
  // The reason has a comma and quotes: RFC 4180 doubles the quotes.
  CHECK(csv.find(",\"16 nodes, \"\"8\"\" at most\"\n") != std::string::npos);
}

TEST_CASE("a sweep's JSON has values, forecast or reason of each point") {
  const auto j = nlohmann::json::parse(sweep_json(sweep_example()));
  CHECK(j["fastest"] == 1);
  CHECK(j["cheapest"] == 0);
  CHECK(j["sweep"][1]["values"]["cluster.pools.p100.nodes"] == "4");
  CHECK(j["sweep"][1]["forecast"]["time_seconds"]["p50"] == 72'000);
  CHECK(j["sweep"][1]["reason"].is_null());
  CHECK(j["sweep"][3]["forecast"].is_null());
}
