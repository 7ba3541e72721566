#include "report/spot.h"

#include <catch2/catch.hpp>

using namespace reckon;
using Catch::Contains;

namespace {

Forecast forecast(double hours, double usd) {
  Forecast f;
  f.seed = 1;
  f.replications = 3;
  f.time_seconds = {3600 * hours, 3600 * hours, 3600 * hours, 3600 * hours};
  f.cost_usd = Quantiles{usd, usd, usd, usd};
  f.costs_usd = {usd, usd, usd};
  f.times_seconds = {3600 * hours, 3600 * hours, 3600 * hours};
  return f;
}

SpotComparison comparison() {
  SpotComparison c;
  c.on_demand = forecast(10, 1000);
  c.saves = true;
  c.spot[1] = {forecast(12, 400), forecast(15, 450)};
  c.spot[0] = {forecast(20, 700), forecast(25, 1100)};
  c.life = SpotLimit{Seconds{24 * 3600}, true, Seconds{5 * 3600}};
  c.gone = SpotLimit{Seconds{4500}, false, std::nullopt};
  return c;
}

Plan plan() {
  Plan p;
  p.name = "job";
  p.shortage = {true, Fact<Seconds>{Seconds{7200}}, Fact<Seconds>{Seconds{4500}}};
  return p;
}

}  // namespace

TEST_CASE("spot stands beside on demand, the planned case first") {
  const std::string text = spot_table(comparison(), plan());
  CHECK_THAT(text, Contains("job: spot beside on demand"));
  CHECK(text.find("saves on a notice (planned)") < text.find("no save on a notice"));
  CHECK_THAT(text, Contains("time, capacity gone at times"));
  // Of three replications.
  CHECK_THAT(text, Contains("> 66.7 %") && Contains("< 33.3 %") && !Contains("100.0 %"));
  CHECK_THAT(text,
             Contains("Spot is cheaper at the median if a node lives for more than 5 h on the "
                      "mean (1 d, assumed)."));
}

TEST_CASE("where no limit turns the answer, that is said") {
  SpotComparison c = comparison();
  c.life->turns.reset();
  CHECK_THAT(spot_table(c, plan()),
             Contains("Spot is cheaper at the median for any node lifetime"));
  c.spot[1][1]->cost_usd->p50 = 2000;
  CHECK_THAT(spot_table(c, plan()),
             Contains("Spot is not cheaper at the median for any node lifetime"));
  c.on_demand.cost_usd.reset();
  CHECK_THAT(spot_table(c, plan()), Contains("A price is unknown."));
}

TEST_CASE("cases that cannot be have no column and no row") {
  SpotComparison c = comparison();
  c.saves = false;
  c.spot[1] = {};
  c.spot[0][1].reset();
  c.gone.reset();
  const std::string text = spot_table(c, plan());
  CHECK_THAT(text, !Contains("saves on a notice") && !Contains("gone"));
  const std::string json = spot_json(c);
  CHECK_THAT(json, Contains("\"mean_time_gone_below\": null"));
  CHECK_THAT(json, Contains("\"turns_at_seconds\": 18000.0"));
}
