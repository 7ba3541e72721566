#include "sim/measurement/slow_ranks_outlook.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("without its slow rank a run's steps are shorter by what that takes longer") {
  LiveEstimate now;
  now.times = {1100, 2100};
  now.costs = {21, 41};
  now.step = Seconds{2};
  const SlowRank slow{3, Seconds{1.5}, Seconds{1}, 3};
  // 100 s and 1 USD until now. The steps to come take 1.5 s in place of 2 s; 50 s stand between.
  const RunEnds ends = ends_with_replacement(now, Seconds{100}, Usd{1}, slow, Seconds{50});
  REQUIRE(ends.times.size() == 2);
  CHECK(ends.times[0] == Approx(100 + 50 + 0.75 * 1000));
  CHECK(ends.times[1] == Approx(100 + 50 + 0.75 * 2000));
  REQUIRE(ends.costs.size() == 2);
  CHECK(ends.costs[0] == Approx(1 + 20 * 800 / 1000.0));  // 800 s in place of 1,000 s
  CHECK(ends.costs[1] == Approx(1 + 40 * 1550 / 2000.0));
  CHECK(ends_with_replacement(now, Seconds{100}, std::nullopt, slow, Seconds{50}).costs.empty());
}

TEST_CASE("a step becomes shorter at most as much as its slowest part") {
  LiveEstimate now;
  now.times = {1100};
  now.step = Seconds{0.6};  // shorter than the rank's own part: a median of other steps
  const SlowRank slow{0, Seconds{1.5}, Seconds{1}, 3};
  const RunEnds ends = ends_with_replacement(now, Seconds{100}, std::nullopt, slow, Seconds{0});
  CHECK(ends.times[0] == Approx(100 + 1000 / 1.5));
}
