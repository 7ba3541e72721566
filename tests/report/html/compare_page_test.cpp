#include <catch2/catch.hpp>

#include "report/example_forecast.h"
#include "report/html/html.h"
#include "support/html_page.h"
#include "support/text.h"

using namespace reckon;
using nlohmann::json;

namespace {

/// The second takes twice as long and costs half; the third does not fit.
CandidateComparison example() {
  Forecast a = test::example_forecast();
  a.times_seconds = {64'800, 72'000, 86'400};
  a.costs_usd = {230, 248, 301};
  Forecast b = a;
  for (double& t : b.times_seconds) t *= 2;
  for (double& usd : b.costs_usd) usd /= 2;
  b.time_seconds = {144'000, 129'600, 142'560, 172'800};
  b.cost_usd = Quantiles{125, 115, 124, 150};
  Forecast misfit = test::example_forecast();
  misfit.feasible = false;
  return compare({a, b, misfit});
}

std::string page_of(const CandidateComparison& c, const std::vector<std::string>& names) {
  return compare_html(c, names, {"/* scripts */\n", "/* style */\n", "/* program */\n"});
}

}  // namespace

TEST_CASE("the page of a comparison names the fastest and the cheapest") {
  const std::string page = page_of(example(), {"quick", "thrifty", "large"});
  CHECK(test::contains(page,
                       "<dt>Fastest, median</dt><dd><b>A: 19.8 h (18.0 .. 24.0)</b>quick</dd>"));
  CHECK(test::contains(page,
                       "<dt>Cheapest, median</dt><dd><b>B: 124 USD (115 .. 150)</b>thrifty</dd>"));
  CHECK(test::contains(page, "not feasible"));
}

TEST_CASE("the charts of a comparison hold every plan that can be") {
  const auto specs = test::specs_of(page_of(example(), {"quick", "thrifty", "large"}));
  REQUIRE(specs.size() == 3);
  const json times = specs.at("time")["data"]["values"];
  REQUIRE(times.size() == 2);
  CHECK(times[0]["name"] == "A: quick");
  CHECK(times[0]["from"] == 18.0);  // hours
  CHECK(times[0]["mark"].get<double>() == Approx(19.8));
  CHECK(times[0]["to"] == 24.0);
  CHECK(specs.at("cost")["data"]["values"][1]["mark"] == 124.0);
  const json points = specs.at("time-and-cost")["data"]["values"];
  REQUIRE(points.size() == 2);
  CHECK(points[1]["plan"] == "B");
  CHECK(points[1]["cost"] == 124.0);
}

TEST_CASE("a comparison without prices has no chart of costs") {
  CandidateComparison c = example();
  for (Forecast& f : c.forecasts) f.cost_usd.reset();
  const std::string page = page_of(c, {"quick", "thrifty", "large"});
  CHECK(test::specs_of(page).size() == 1);
  CHECK(test::contains(page, "<dt>Cheapest, median</dt><dd><b>unknown</b>"));
}
