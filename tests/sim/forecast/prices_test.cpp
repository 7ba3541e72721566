#include "sim/forecast/prices.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"
#include "sim/forecast/forecast.h"
#include "sim/forecast/replicate.h"
#include "support/plans.h"

using namespace reckon;

namespace {

Plan plan_with_market(const std::string& market, double low, double high) {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  for (PlannedPool& pool : plan.pools) pool.price.spread = {market, low, high, SourceId::user};
  return plan;
}

Forecast priced(const Plan& plan, int replications = 128) {
  const auto network = make_fluid_network();
  ForecastOptions options;
  options.replications = replications;
  options.threads = 1;
  return make_forecast(plan, *network, options);
}

}  // namespace

TEST_CASE("a cost's quantiles contain the price's, and its median stays") {
  const Forecast sure = priced(plan_with_market("", 1, 1));
  const Forecast f = priced(plan_with_market("m", 0.5, 2));
  REQUIRE(f.cost_usd);
  // Time is certain in this plan: cost(k) = price(k) x node time.
  CHECK(sure.cost_usd->p5 == sure.cost_usd->p95);
  CHECK(f.cost_usd->p50 == Approx(sure.cost_usd->p50).epsilon(0.02));
  CHECK(f.cost_usd->p5 == Approx(0.5 * sure.cost_usd->p50).epsilon(0.05));
  CHECK(f.cost_usd->p95 == Approx(2 * sure.cost_usd->p50).epsilon(0.05));
  CHECK(f.time_seconds.p50 == sure.time_seconds.p50);
  CHECK(f.cost_at_medians_usd.value() == Approx(sure.cost_usd->mean).epsilon(1e-6));
  REQUIRE_FALSE(f.assumptions.empty());
  CHECK(f.assumptions.front().key == "price.m");
  CHECK(f.assumptions.front().time_effect_seconds == 0);
  CHECK(*f.assumptions.front().cost_effect_usd == Approx(1.5 * sure.cost_usd->p50).epsilon(1e-3));
}

TEST_CASE("plans that buy in one market meet its price together, those of two apart") {
  const auto a = price_factors({"m", 0.5, 2, {}}, 7, 256),
             b = price_factors({"m", 0.5, 2, {}}, 7, 256);
  CHECK(a == b);
  const auto c = price_factors({"n", 0.5, 2, {}}, 7, 256);
  double sum = 0, squares_a = 0, squares_c = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum += std::log(a[k]) * std::log(c[k]);
    squares_a += std::log(a[k]) * std::log(a[k]);
    squares_c += std::log(c[k]) * std::log(c[k]);
  }
  CHECK(std::abs(sum / std::sqrt(squares_a * squares_c)) < 0.2);  // three standard errors of 256
}

TEST_CASE("every 64 draws of a price have each 64th of the distribution once") {
  const std::vector<double> scores = price_scores("price.m", 3, 192);
  for (std::size_t block = 0; block < 3; ++block) {
    std::vector<double> of(scores.begin() + std::ptrdiff_t(64 * block),
                           scores.begin() + std::ptrdiff_t(64 * (block + 1)));
    std::ranges::sort(of);
    for (std::size_t k = 1; k < 63; ++k) {
      const double low = normal_quantile(double(k) / 64) / 1.6448536269514722;
      const double high = normal_quantile(double(k + 1) / 64) / 1.6448536269514722;
      CHECK((of[k] >= low - 1e-9 && of[k] <= high + 1e-9));
    }
  }
  // One by one as all at once, and in no order of their ranks.
  for (std::uint32_t k : {0u, 63u, 64u, 191u}) CHECK(price_score("price.m", 3, k) == scores[k]);
  CHECK_FALSE(std::ranges::is_sorted(scores.begin(), scores.begin() + 64));
}

TEST_CASE("the rank turns at the price at which both plans cost the same") {
  Forecast a, b;
  a.cost_usd = Quantiles{100, 0, 0, 0};
  a.cost_at_medians_usd = 100;
  a.prices.push_back({"spot", false, 10, 5, 20, "", "", 80});  // 8 node-hours at 10 USD
  b.cost_usd = Quantiles{140, 0, 0, 0};
  b.cost_at_medians_usd = 140;
  b.prices.push_back({"list", true, 14, 14, 14, "", "", 140});
  // 20 + 8 p = 140 at p = 15
  const auto turn = rank_turn(a, b);
  REQUIRE(turn);
  CHECK(turn->usd_per_hour == Approx(15));
  CHECK(turn->dearer);
  CHECK(turn->price.what == "spot");
  // ln(1.5) / ln(2) of the half-range: P(z > 0.585 x 1.645) = 0.168
  CHECK(turn->chance == Approx(0.168).epsilon(0.01));
  // Of one market both move: 20 + 8 p against 0 + 14 p cross at 10/3, below.
  b.prices.front() = {"spot", false, 10, 5, 20, "", "", 140};
  const auto below = rank_turn(a, b);
  REQUIRE(below);
  CHECK(below->usd_per_hour == Approx(10.0 * (1 - 40.0 / 60)));
  CHECK_FALSE(below->dearer);
  b.cost_usd.reset();
  CHECK_FALSE(rank_turn(a, b));
}
