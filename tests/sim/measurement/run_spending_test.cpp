#include "sim/measurement/run/spending.h"

#include <catch2/catch.hpp>

namespace reckon {
namespace {

using namespace std::chrono_literals;

/// Two nodes of 1 USD/h and a fee of 1 USD/h: 3 USD/h.
RunRates three_an_hour() {
  RunRates r;
  PoolRates pool;
  pool.pool = "here";
  pool.nodes = 2;
  pool.price.machine = {1'000'000'000};
  r.pools.push_back(pool);
  r.billing.management = {1'000'000'000};
  return r;
}

RunRecord part_start(std::int64_t attempt, Seconds at) {
  RunRecord r;
  r.attempt = attempt;
  r.at = at;
  return r;
}
EndRecord part_end(std::int64_t attempt, Seconds at, std::optional<double> spent = {}) {
  EndRecord r;
  r.attempt = attempt;
  r.at = at;
  r.spent = spent;
  return r;
}

double spent_at(const RunSpending& spending, Seconds at) { return to_usd(spending.at(at)).v; }

TEST_CASE("a first part pays from the run's begin") {
  const RunSpending spending(three_an_hour(), {}, {}, 0s);
  CHECK(spent_at(spending, 0s) == 0);
  CHECK(spent_at(spending, 1h) == Approx(3));
}

TEST_CASE("between a recorded end and the next part nothing is paid") {
  const RunSpending spending(three_an_hour(), {part_start(0, 1s)}, {part_end(0, 1h, 3.0)}, 10h);
  CHECK(spent_at(spending, 10h) == Approx(3));
  CHECK(spent_at(spending, 12h) == Approx(3 + 6));
}

TEST_CASE("what an end says was spent holds, whatever today's plan costs") {
  const RunSpending spending(three_an_hour(), {part_start(0, 1s)}, {part_end(0, 1h, 70.0)}, 2h);
  CHECK(spent_at(spending, 3h) == Approx(70 + 3));
}

TEST_CASE("an end that says nothing is charged at this plan's prices, from its part's begin") {
  const RunSpending spending(three_an_hour(), {part_start(0, 1s), part_start(1, 5h)},
                             {part_end(0, 1h), part_end(1, 7h)}, 9h);
  CHECK(spent_at(spending, 9h) == Approx(3 + 6));
}

TEST_CASE("a part that was killed is paid for until the next begins: nobody gave its nodes back") {
  SECTION("the first") {
    const RunSpending spending(three_an_hour(), {part_start(0, 1s)}, {}, 2h);
    CHECK(spent_at(spending, 2h) == Approx(6));
  }
  SECTION("behind a part with an end") {
    const RunSpending spending(three_an_hour(),
                               {part_start(0, 1s), part_start(1, 5h), part_start(2, 6h)},
                               {part_end(0, 1h, 3.0)}, 8h);
    CHECK(spent_at(spending, 9h) == Approx(3 + 12));
  }
}

TEST_CASE("a minimum rental is paid at once") {
  RunRates r = three_an_hour();
  r.pools.front().minimum_rental = 1h;
  const RunSpending spending(r, {}, {}, 0s);
  CHECK(spent_at(spending, 1s) == Approx(2).margin(0.01));
}

}  // namespace
}  // namespace reckon
