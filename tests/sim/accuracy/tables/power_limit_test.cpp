#include "sim/accuracy/tables/power_limit.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("a power limit slows by the share of the dynamic power that it leaves") {
  const PowerLimitLaw law{50, 3};
  const LimitedEpoch given{300, Seconds{100}, 266};
  // (77 - 50) / (266 - 50) = 1/8: half of the clock, twice the time.
  const LimitedEpoch capped = under_limit(given, 77, law);
  CHECK(capped.time.count() == Approx(200));
  CHECK(capped.watts == 77);
  // Work that draws less than the limit does not feel it.
  CHECK(under_limit(given, 270, law).time.count() == 100);
  CHECK(under_limit(given, 270, law).watts == 266);
}

TEST_CASE("a higher limit is never slower, and no limit stops the clock") {
  for (const double share : {0.0, 60.0, 250.0, 400.0}) {
    Seconds before{1e9};
    for (double limit = 20; limit <= 320; limit += 10) {
      const Seconds t = under_limit({300, Seconds{100}, 266}, limit, {share, 2.5}).time;
      CHECK(t <= before);
      CHECK(t.count() >= 100);
      before = t;
    }
  }
}

TEST_CASE("the law of an accelerator is found from epochs under its limits") {
  const PowerLimitLaw truth{0.24 * 250, 3.5};
  std::vector<std::vector<LimitedEpoch>> tasks;
  for (const double watts : {180.0, 240.0}) {
    const LimitedEpoch highest{250, Seconds{50}, watts};
    auto& epochs = tasks.emplace_back();
    for (const double limit : {100.0, 150.0, 200.0, 250.0})
      epochs.push_back(under_limit(highest, limit, truth));
  }
  const PowerLimitLaw found = fit_power_limit(tasks);
  CHECK(found.static_watts == Approx(truth.static_watts));
  CHECK(found.exponent == Approx(truth.exponent));
  CHECK(fit_power_limit({}).exponent == 3);
}
