#include "executor/launch/run_money.h"

#include <catch2/catch.hpp>

#include "support/text.h"

namespace reckon {
namespace {

using namespace std::chrono_literals;

/// One node of 1 USD a second.
RunMoney money(std::optional<Usd> budget, Seconds save) {
  RunRates rates;
  PoolRates pool;
  pool.nodes = 1;
  pool.price.machine = {3'600'000'000'000};
  rates.pools.push_back(pool);
  EarlierPart before;
  before.clock = RunClock::starting_now();
  return {rates, before, budget, save};
}

TEST_CASE("a run stops while the budget still does for a step and its checkpoint") {
  // 100 USD; a step of 10 s, a save of 5 s, 0.2 s until the next look.
  RunMoney m = money(Usd{100}, 5s);
  CHECK(!m.passes(84s, 10s));
  CHECK(m.passes(85s, 10s));
  SECTION("a longer step ends it earlier") { CHECK(m.passes(75s, 20s)); }
  SECTION("so does a save that took longer than was forecast; a shorter one changes nothing") {
    m.saved(1s);
    CHECK(!m.passes(84s, 10s));
    m.saved(8s);
    CHECK(m.passes(82s, 10s));
  }
}

TEST_CASE("where nodes are held until a job has ended, the stop begins so much earlier") {
  // 100 USD; a step of 10 s, a save of 5 s, 15 s until the pods are gone, 0.2 s to the next look.
  RunRates rates;
  PoolRates pool;
  pool.nodes = 1;
  pool.price.machine = {3'600'000'000'000};
  rates.pools.push_back(pool);
  EarlierPart before;
  before.clock = RunClock::starting_now();
  const RunMoney m(rates, before, Usd{100}, 5s, 15s);
  CHECK(!m.passes(69s, 10s));
  CHECK(m.passes(70s, 10s));
}

TEST_CASE("a run that is out of money stays so, and what the user asks goes before") {
  RunMoney m = money(Usd{100}, 5s);
  CHECK(m.request(StopRequest::none, 10s, 10s) == StopRequest::none);
  CHECK(!m.is_out());
  CHECK(m.request(StopRequest::at_once, 99s, 10s) == StopRequest::at_once);
  CHECK(!m.is_out());
  CHECK(m.request(StopRequest::none, 90s, 10s) == StopRequest::own);
  CHECK(m.request(StopRequest::none, 90s, 0s) == StopRequest::own);
  CHECK(m.is_out());
  CHECK_THAT(m.reason(90s), Catch::Contains("90.00 USD of the budget of 100.00 USD"));
}

TEST_CASE("without a budget nothing passes it") {
  RunMoney m = money(std::nullopt, 5s);
  CHECK(!m.passes(1000000s, 10s));
  CHECK(m.request(StopRequest::none, 1000000s, 10s) == StopRequest::none);
}

}  // namespace
}  // namespace reckon
