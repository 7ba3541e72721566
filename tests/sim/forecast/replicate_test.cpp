#include "sim/forecast/replicate.h"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

using namespace reckon;

namespace {

PlanAssumption assumption(double low, double value, double high, std::string unit = "s") {
  PlanAssumption a;
  a.key = "pools.p100.provisioning";
  a.unit = std::move(unit);
  a.low = low;
  a.value = value;
  a.high = high;
  return a;
}

}  // namespace

TEST_CASE("a draw meets the median and both ends of the range exactly") {
  const PlanAssumption a = assumption(2, 3, 12);
  CHECK(value_at(a, 0) == 3);
  CHECK(value_at(a, -1) == Approx(2));
  CHECK(value_at(a, 1) == Approx(12));
  CHECK(value_at(a, 0.5) == Approx(6));  // half-way on the logarithm: 3 * sqrt(12 / 3)
}

TEST_CASE("a range that starts at zero is drawn linearly and stays positive") {
  const PlanAssumption a = assumption(0, 4, 6);
  CHECK(value_at(a, -1) == 0);
  CHECK(value_at(a, -0.5) == Approx(2));
  CHECK(value_at(a, -2) == 0);
  CHECK(value_at(a, 2) > 6);
}

TEST_CASE("a fraction is never more than the whole") {
  CHECK(value_at(assumption(0.5, 0.9, 0.99, "fraction"), 2.4) == 1.0);
}

TEST_CASE("draws rise with the score, whatever the range") {
  CHECK(rc::check("monotonic", [] {
    const double value = *rc::gen::inRange(1, 1000) * 1e-2;
    const PlanAssumption a = assumption(value / (1 + *rc::gen::inRange(0, 100) * 0.1), value,
                                        value * (1 + *rc::gen::inRange(0, 100) * 0.1));
    const double one = *rc::gen::inRange(-250, 251) * 0.01;
    const double other = *rc::gen::inRange(-250, 251) * 0.01;
    RC_ASSERT(value_at(a, std::min(one, other)) <= value_at(a, std::max(one, other)));
  }));
}

TEST_CASE("one draw in twenty falls below the range and one in twenty above it") {
  const PlanAssumption a = assumption(2, 3, 12);
  int below = 0, above = 0, half = 0;
  constexpr int kDraws = 20'000;
  for (int k = 0; k < kDraws; ++k) {
    const double score = draw_score(a, 1, std::uint32_t(k));
    below += score < -1;
    above += score > 1;
    half += score < 0;
  }
  // Binomial with p = 0.05: standard deviation 31; 0.5: 71. Five of them are allowed.
  CHECK(below == Approx(1000).margin(155));
  CHECK(above == Approx(1000).margin(155));
  CHECK(half == Approx(10'000).margin(355));
}

TEST_CASE("a draw depends on seed, replication and key and on nothing else") {
  PlanAssumption a = assumption(2, 3, 12);
  const double score = draw_score(a, 1, 5);
  PlanAssumption same_key = assumption(100, 200, 300, "USD/h");
  CHECK(draw_score(same_key, 1, 5) == score);
  CHECK(draw_score(a, 2, 5) != score);
  CHECK(draw_score(a, 1, 6) != score);
  a.key = "pools.servers.provisioning";
  CHECK(draw_score(a, 1, 5) != score);
}
