#include "sim/forecast/compare.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace reckon;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

Forecast forecast(std::vector<double> times, std::vector<double> costs) {
  Forecast f;
  f.seed = 3;
  f.replications = 4;
  f.times_seconds = std::move(times);
  f.costs_usd = std::move(costs);
  return f;
}

}  // namespace

TEST_CASE("the probability to win counts pairs of one replication, a tie half") {
  const std::vector<double> a{1, 2, 3, 4}, b{2, 2, 1, 5};
  // 1 < 2 wins, 2 = 2 ties, 3 > 1 loses, 4 < 5 wins: (1 + 0.5 + 0 + 1) / 4
  CHECK(probability_less(a, b) == 0.625);
  CHECK(probability_less(b, a) == 0.375);
  CHECK(probability_less(a, a) == 0.5);
}

TEST_CASE("pairs, not distributions, are compared") {
  // One second faster in every replication, though the ranges overlap almost wholly.
  const std::vector<double> a{10, 20, 30, 40}, b{11, 21, 31, 41};
  CHECK(probability_less(a, b) == 1);
  const Quantiles d = paired_difference(a, b);
  CHECK(d.p5 == -1);
  CHECK(d.mean == -1);
  CHECK(d.p95 == -1);
}

TEST_CASE("a run that never finishes loses against one that does and ties with another") {
  CHECK(probability_less(std::vector{kNever, 1.0}, std::vector{5.0, kNever}) == 0.5);
  CHECK(probability_less(std::vector{kNever}, std::vector{kNever}) == 0.5);
  CHECK(paired_difference(std::vector{kNever, kNever}, std::vector{kNever, kNever}).p50 == 0);
  CHECK(paired_difference(std::vector{kNever}, std::vector{1.0}).p50 == kNever);
}

TEST_CASE("a comparison has a number for every pair that can be compared") {
  const auto c = compare({forecast({1, 2, 3, 4}, {10, 10, 10, 10}),
                          forecast({2, 3, 4, 5}, {}),  // a price is unknown
                          forecast({4, 3, 2, 1}, {5, 15, 5, 15})});
  CHECK_FALSE(c.probability_faster[0][0]);
  CHECK(c.probability_faster[0][1] == 1.0);
  CHECK(c.probability_faster[1][0] == 0.0);
  CHECK(c.probability_faster[0][2] == 0.5);  // 1 < 4, 2 < 3, 3 > 2, 4 > 1
  CHECK_FALSE(c.probability_cheaper[0][1]);
  CHECK_FALSE(c.cost_difference[1][2]);
  CHECK(c.probability_cheaper[0][2] == 0.5);
  // 5, -5, 5, -5: mean 0
  REQUIRE(c.cost_difference[0][2]);
  CHECK(c.cost_difference[0][2]->mean == 0);
  CHECK(c.time_difference[1][0]->p50 == 1);
}
