#include <catch2/catch.hpp>
#include <limits>

#include "sim/forecast/forecast.h"

using namespace reckon;

TEST_CASE("quantiles interpolate linearly between order statistics") {
  // n = 5, sorted 1 2 3 4 10: positions 4 * p = 0.2, 2, 3.8 give 1 + 0.2, 3, 4 + 0.8 * 6.
  const Quantiles q = quantiles({10, 1, 3, 2, 4});
  CHECK(q.mean == Approx(4));
  CHECK(q.p5 == Approx(1.2));
  CHECK(q.p50 == Approx(3));
  CHECK(q.p95 == Approx(8.8));
}

TEST_CASE("of 101 equidistant values the quantiles are the values themselves") {
  std::vector<double> values;
  for (int k = 100; k >= 0; --k) values.push_back(k);
  const Quantiles q = quantiles(values);
  CHECK(q.p5 == Approx(5));
  CHECK(q.p50 == Approx(50));
  CHECK(q.p95 == Approx(95));
}

TEST_CASE("a single value is all of its quantiles") {
  const Quantiles q = quantiles({7.5});
  CHECK((q.mean == 7.5 && q.p5 == 7.5 && q.p50 == 7.5 && q.p95 == 7.5));
}

TEST_CASE("runs that never finish make only the quantiles that reach them infinite") {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> values(100, 1.0);
  values[3] = kNever;  // 1 % of the runs
  Quantiles q = quantiles(values);
  CHECK(q.p95 == 1.0);
  CHECK(q.mean == kNever);
  for (std::size_t k = 0; k < 10; ++k) values[k] = kNever;  // 10 %
  q = quantiles(values);
  CHECK(q.p50 == 1.0);
  CHECK(q.p95 == kNever);
  CHECK(quantiles(std::vector<double>(3, kNever)).p50 == kNever);  // not NaN
}
