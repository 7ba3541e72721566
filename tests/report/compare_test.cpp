#include "report/compare.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "report/example_forecast.h"
#include "report/table.h"
#include "support/golden.h"

using namespace reckon;

namespace {

CandidateComparison example() {
  Forecast a = test::example_forecast();
  a.times_seconds = {3'600, 7'200, 10'800, 14'400};
  a.costs_usd = {10, 20, 30, 40};
  Forecast b = a;
  b.times_seconds = {7'200, 7'200, 7'200, 18'000};  // a: won, tied, lost, won
  b.costs_usd = {20, 30, 40, 50};                   // always 10 USD more
  Forecast never = test::example_forecast();
  never.feasible = false;
  return compare({a, b, never});
}
const std::vector<std::string> kNames{"small", "large", "too large"};

}  // namespace

TEST_CASE("a comparison shows who wins how often, and by how much") {
  const std::string table = compare_table(example(), kNames);
  test::check_golden("report/golden/compare.txt", table);
  CHECK(table.find("62.5 %") != std::string::npos);   // (1 + 0.5 + 0 + 1) / 4
  CHECK(table.find("> 99.9 %") != std::string::npos);  // always cheaper
  CHECK(table.find("+10.0 USD") != std::string::npos);
  CHECK(table.find("not feasible") != std::string::npos);
}

TEST_CASE("a comparison's JSON has the matrices, null where there is nothing to compare") {
  const auto j = nlohmann::json::parse(compare_json(example(), kNames));
  CHECK(j["command"] == "compare");
  CHECK(j["scenarios"].size() == 3);
  CHECK(j["scenarios"][0]["command"] == "simulate");
  CHECK(j["probability_faster"][0][1] == 0.625);
  CHECK(j["probability_faster"][1][0] == 0.375);
  CHECK(j["probability_faster"][0][0].is_null());
  CHECK(j["probability_faster"][0][2].is_null());
  CHECK(j["probability_cheaper"][0][1] == 1.0);
  CHECK(j["cost_difference_usd"][1][0]["mean"] == 10.0);
}

TEST_CASE("differences are shown with their signs in the unit of the largest") {
  CHECK(time_difference({0, -7'200, -3'600, 1'800}) == "-1.00 h (-2.00 .. +0.50)");
  CHECK(usd_difference({0, -5, 0, 5}) == "+0.00 USD (-5.00 .. +5.00)");
  CHECK(usd_difference({0, 1'000, 2'000, 3'000}) == "+2,000 USD (+1,000 .. +3,000)");
}
