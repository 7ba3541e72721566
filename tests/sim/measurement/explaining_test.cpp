#include "sim/measurement/calibration/explaining.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace reckon {
namespace {

AssumptionEffect assumption(double low, double median, double high, const char* unit = "s") {
  AssumptionEffect a;
  a.what = "it";
  a.unit = unit;
  a.low = low;
  a.median = median;
  a.high = high;
  return a;
}

TEST_CASE("a delay explains a difference of its own size, a rate by its inverse") {
  // 30 s longer with a delay of 10 s at the median: 40 s.
  const auto delay = explaining(assumption(5, 10, 20), 15, 30, Around::medians);
  REQUIRE(delay);
  CHECK(*delay->value == Approx(40));
  CHECK_FALSE(delay->within_range());
  // 100 B at 10 B/s: 10 s. At its low end 20 s, at its high end 5 s; 4 s less is 6 s: 16.7 B/s.
  const auto rate = explaining(assumption(5, 10, 20, "B/s"), 5 - 20, -4, Around::medians);
  REQUIRE(rate);
  CHECK(*rate->value == Approx(100.0 / 6));
  CHECK(rate->within_range());
  CHECK(rate->percentile > 0.5);
}

TEST_CASE("the ends of an assumption's range are its 5th and 95th percentile, its value the 50th") {
  const AssumptionEffect a = assumption(5, 10, 40);  // lopsided
  CHECK(explaining(a, 35, -5, Around::medians)->percentile == Approx(0.05));
  CHECK(explaining(a, 35, 0, Around::medians)->percentile == Approx(0.5));
  CHECK(explaining(a, 35, 30, Around::medians)->percentile == Approx(0.95));
  CHECK(explaining(a, 35, 30.1, Around::medians)->percentile > 0.95);
}

TEST_CASE("beside a mean a difference is counted from the draws' mean") {
  // Log-normal: mean = median exp(s^2 / 2), s = ln 2 / 1.645 = 0.4214, but for tails that are cut.
  const double mean = 10 * std::exp(0.4214 * 0.4214 / 2);
  CHECK(*explaining(assumption(5, 10, 20), 15, 0, Around::mean)->value ==
        Approx(mean).epsilon(0.005));
}

TEST_CASE("what no value explains is not blamed") {
  CHECK_FALSE(explaining(assumption(5, 10, 20), 15, -10, Around::medians));  // a delay of 0
  CHECK_FALSE(explaining(assumption(10, 10, 10), 15, 5, Around::medians));   // no range
  CHECK_FALSE(explaining(assumption(5, 10, 20), 0, 5, Around::medians));     // no effect
  CHECK_FALSE(explaining(assumption(0.4, 0.5, 0.8, "fraction"), -1, -1.5, Around::medians));
}

TEST_CASE("of several the one that has to be least off comes first") {
  const AssumptionEffect sure = assumption(9, 10, 11), unsure = assumption(2, 10, 50);
  const auto found =
      most_plausible({{&sure, 2}, {&unsure, 48}, {&unsure, 0.01}}, 5, Around::medians);
  REQUIRE(found.size() == 2);  // the third hardly moves it
  CHECK(found[0].assumption.high == 50);
  CHECK(found[0].within_range());
  CHECK_FALSE(found[1].within_range());
  CHECK(most_plausible({{&sure, 2}, {&unsure, 48}}, 5, Around::medians, 1).size() == 1);
}

TEST_CASE("where no assumption explains it alone, those it rests on are named, the largest first") {
  AssumptionEffect one = assumption(5, 10, 20), two = assumption(50, 100, 200);
  two.value = "1 min 40 s (50.0 s .. 3 min 20 s)";
  two.key = "job_start.it";
  two.source = "a book";
  // 110 s of two delays, of which the run has none.
  const auto found = most_plausible({{&one, 15}, {&two, 150}}, -110, Around::medians);
  REQUIRE(found.size() == 2);
  CHECK(found[0].assumption.key == "job_start.it");
  CHECK_FALSE(found[0].value);
  // Nor where their ranges are too narrow to matter beside the difference; of what it does not rest
  // on nothing is said.
  const auto narrow = most_plausible({{&one, 0.1}, {&two, 0}}, 1000, Around::medians);
  REQUIRE(narrow.size() == 1);
  CHECK_FALSE(narrow[0].value);
  CHECK_FALSE(found[0].within_range());
  CHECK(to_text(found[0]) ==
        "it: no value near its range explains the difference; assumed 1 min 40 s (50.0 s "
        ".. 3 min 20 s) [job_start.it; a book]");
}

}  // namespace
}  // namespace reckon
