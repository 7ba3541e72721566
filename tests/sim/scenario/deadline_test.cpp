#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// Times that are given as dates.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("a time held to a date is so many seconds from the start") {
  const auto plan = shipped_plan(
      "gke-p100-autoscaling",
      {"start=2026-12-04T18:00:00Z", "expect=['p95(time) <= 2026-12-06T20:00:00Z', time > 1h]"});
  if (!plan) FAIL(format(plan.error()));
  CHECK(plan->expect.at(0).value == 50 * 3600);  // two days and two hours
  CHECK(plan->expect.at(0).statistic == Statistic::p95);
  CHECK(plan->expect.at(1).value == 3600);
}

TEST_CASE("a date says nothing without a start, and must lie behind it") {
  const auto errors = [](const std::vector<std::string>& overrides) {
    const auto plan = shipped_plan("gke-p100-autoscaling", overrides);
    return plan ? std::string() : format(plan.error());
  };
  const std::string date = "expect=['time <= 2026-12-06T20:00:00Z']";
  CHECK_THAT(errors({date}), Catch::Contains("needs the time at which the run starts"));
  CHECK_THAT(errors({date, "start=2026-12-07T00:00:00Z"}),
             Catch::Contains("asks for a time before the start"));
  CHECK_THAT(parse_expectation("time <= 2026-13-40").error(),
             Catch::Contains("'2026-13-40' is no date and time in UTC"));
  CHECK_THAT(parse_expectation("cost <= 2026-12-06T20:00:00Z").error(), Catch::Contains("USD"));
}
