#include <catch2/catch.hpp>

#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_texts.h"
#include "sim/scenario/yaml/scenario_yaml.h"

using namespace reckon;

namespace {
Expectation parsed(std::string_view text) {
  auto e = parse_expectation(text);
  if (!e) FAIL(text << ": " << e.error());
  return *e;
}
std::string error(std::string_view text) {
  const auto e = parse_expectation(text);
  return e ? "" : e.error();
}
}  // namespace

TEST_CASE("each metric takes a value in its own unit, kept in SI") {
  CHECK(parsed("time <= 48h").value == 48 * 3600);
  CHECK(parsed("cost < 500 USD").value == 500);
  CHECK(parsed("goodput >= 90%").value == Approx(0.9));
  CHECK(parsed("goodput >= 0.9").value == 0.9);
  CHECK(parsed("samples_per_second > 3250").value == 3250);
  CHECK(parsed("samples_per_second > 77.4k").value == Approx(77400));
  CHECK(parsed("memory <= 16GiB").value == 16.0 * 1024 * 1024 * 1024);
  CHECK(parsed("step.seconds <= 250ms").value == 0.25);
  CHECK(parsed("step.mfu >= 0.4").value == 0.4);
  CHECK(parsed("interruptions == 0").value == 0);
  CHECK(parsed("feasible == false").value == 0);
  CHECK(parsed("feasible != false").comparison == Comparison::ne);
  CHECK(parsed("feasible == true").value == 1);
}

TEST_CASE("the metric, share, statistic and comparison of an expectation are read") {
  CHECK(parsed("step.seconds<=1s").metric == Metric::step_seconds);
  CHECK(parsed("memory <= 1GB").metric == Metric::memory);
  const Expectation share = parsed("step.share( bubble ) < 10%");
  CHECK(share.metric == Metric::step_share);
  CHECK(share.share == StepShare::bubble);
  CHECK(share.comparison == Comparison::lt);
  CHECK(parsed("step.share(communication) < 1").share == StepShare::communication);
  CHECK(parsed("p5(goodput) > 0.5").statistic == Statistic::p5);
  CHECK(parsed("p50(time) >= 1h").statistic == Statistic::p50);
  CHECK(parsed("p95 ( cost ) == 1 USD").statistic == Statistic::p95);
  CHECK(parsed("mean(interruptions) != 1").statistic == Statistic::mean);
  CHECK(parsed("p50(time) >= 1h").comparison == Comparison::ge);
  CHECK(parsed("p50(time) > 1h").comparison == Comparison::gt);
  CHECK(parsed("  time <= 1h ").text == "time <= 1h");
}

TEST_CASE("a distribution without a statistic is its mean, other metrics have none") {
  for (const char* text : {"time <= 1h", "cost <= 1 USD", "goodput >= 0.9", "interruptions < 3"})
    CHECK(parsed(text).statistic == Statistic::mean);
  for (const char* text :
       {"samples_per_second > 1", "memory < 1GB", "step.mfu > 0", "feasible == true"})
    CHECK(parsed(text).statistic == Statistic::none);
}

TEST_CASE("a mistake in an expectation is named with the words that are allowed") {
  CHECK(error("") == "no comparison (allowed: <=, >=, ==, !=, <, >)");
  CHECK(error("time = 4h") == "unknown comparison '=' (allowed: <=, >=, ==, !=, <, >)");
  CHECK(error("<= 4h") == "the left side is empty, write a metric such as p95(time)");
  CHECK(error("p95() <= 4h").starts_with("unknown metric ''"));
  CHECK(error("p95(time <= 4h").starts_with("unknown metric 'p95(time'"));
  CHECK(error("p95(p95(time)) <= 4h").starts_with("unknown metric 'p95(time)'"));
  CHECK(error("step.share <= 4%") == "step.share needs a part, such as step.share(communication)");
  CHECK(error("p5(step.mfu) > 0.1") == "step.mfu is one number, write it without p5( )");
  CHECK(error("time <= -4h") == "the value is negative");
  CHECK(error("time <= ").starts_with("'' is not a duration"));
  CHECK(error("time <= 4h <= 5h").starts_with("'4h <= 5h'"));
  CHECK(error("goodput <= 2") == "the value is a fraction, at most 1 or 100%");
  CHECK(error("cost <= 4").starts_with("'4' has no currency"));
  CHECK(error("feasible == yes") == "feasible is true or false, not 'yes'");
  CHECK(error("memory <= nan").starts_with("'nan' is not a size"));
}

TEST_CASE("an amount in the currency of the prices is compared in USD, at their rate") {
  const std::string text =
      std::string(testing::kSmall) + "expect: [p95(cost) <= 460 EUR, mean(cost) <= 500 USD]\n";
  const auto file = parse_scenario(text + "prices: {currency: EUR, usd_rate: 0.92}\n", "a.yaml");
  REQUIRE(file);
  CHECK(file->scenario.expect[0].value == Approx(500));
  CHECK(file->scenario.expect[0].text == "p95(cost) <= 460 EUR");
  CHECK(file->scenario.expect[1].value == 500);

  const auto unknown = parse_scenario(text, "a.yaml");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().front().what ==
        "expectation 'p95(cost) <= 460 EUR' is in EUR, whose rate is not known");
  CHECK(unknown.error().front().at.line == 12);
  CHECK_FALSE(parse_scenario(text + "prices: {currency: GBP, usd_rate: 0.8}\n", "a.yaml"));
}
