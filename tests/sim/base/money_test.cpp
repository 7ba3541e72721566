#include "sim/base/money.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

using namespace reckon;
using namespace std::chrono_literals;

TEST_CASE("a charge is the rate times the time to the nano-dollar") {
  const HourlyRate rate = to_hourly_rate(UsdPerSecond{1.46 / 3600});
  CHECK(charge(rate, 1h).n == 1'460'000'000);
  CHECK(charge(rate, 1s).n == 405'556);  // 1.46e9 / 3600 = 405,555.6
  CHECK(charge(rate, 0s).n == 0);
}

TEST_CASE("a year of a thousand expensive nodes does not overflow") {
  const HourlyRate rate = to_hourly_rate(UsdPerSecond{100.0 / 3600});
  CHECK(charge(rate, 24h * 365).n ==
        876'000LL * 1'000'000'000);  // 876,000 USD a node; 9.2e9 USD fit
}

TEST_CASE("accelerator time of a hundred thousand accelerators for a year does not overflow") {
  const AcceleratorTime year = accelerator_time(100'000, std::chrono::hours(24 * 365));
  CHECK(ratio(accelerator_time(50'000, std::chrono::hours(24 * 365)), year) == 0.5);
}

TEST_CASE("splitting a lease changes the bill by at most half a nano-dollar a part") {
  CHECK(rc::check("split", [] {
    const auto rate = HourlyRate{*rc::gen::inRange<std::int64_t>(0, 200'000'000'000)};
    const auto a = SimDuration{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000'000)};
    const auto b = SimDuration{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000'000)};
    const Int128 apart = charge(rate, a).n + charge(rate, b).n;
    const Int128 difference = apart - charge(rate, a + b).n;
    RC_ASSERT(difference >= -1);
    RC_ASSERT(difference <= 1);
  }));
}
