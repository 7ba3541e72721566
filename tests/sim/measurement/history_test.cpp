#include "sim/measurement/history.h"

#include <catch2/catch.hpp>
#include <limits>

namespace reckon {
namespace {

HistoryRecord forecast(const std::string& plan, double p5, double p50, double p95) {
  HistoryRecord r;
  r.at = "2026-11-21T20:00:00Z";
  r.plan = plan;
  r.time_seconds = {p50, p5, p50, p95};
  r.step_seconds = 0.1;
  return r;
}
HistoryRecord run(const std::string& plan, double took) {
  HistoryRecord r = forecast(plan, took, took, took);
  r.kind = HistoryRecord::Kind::run;
  r.directory = "runs/" + plan;
  return r;
}

}  // namespace

TEST_CASE("a forecast is scored by the first run of its plan that came after it") {
  History h;
  h.records = {run("a", 100),  // before any forecast: scores nothing
               forecast("a", 8, 10, 12),
               forecast("b", 1, 2, 3),
               run("a", 11),
               run("b", 4),
               run("a", 50),
               forecast("c", 1, 2, 3)};
  const HistoryScore score = score_history(h);
  REQUIRE(score.forecasts.size() == 3);
  CHECK(score.scored == 2);
  CHECK(score.inside == 1);
  CHECK(score.forecasts[0].inside);
  CHECK(score.forecasts[0].error == Approx(10.0 / 11 - 1));
  CHECK(!score.forecasts[1].inside);
  CHECK(score.forecasts[1].error == Approx(-0.5));
  CHECK(!score.forecasts[2].run);
  CHECK(score.median_error == Approx((0.5 + 1.0 / 11) / 2));
}

TEST_CASE(
    "the same forecast twice before a run counts once, another one or one after it by itself") {
  History h;
  h.records = {forecast("a", 8, 10, 12), forecast("a", 8, 10, 12),
               forecast("a", 9, 10, 11), run("a", 8.5),
               forecast("a", 8, 10, 12), run("a", 8.5)};
  const HistoryScore score = score_history(h);
  CHECK(score.scored == 3);
  CHECK(score.inside == 2);
}

TEST_CASE("calibrated forecasts have a score of their own") {
  History h;
  HistoryRecord better = forecast("a", 9, 10, 11);
  better.calibrations = {"calibration.yaml"};
  h.records = {forecast("a", 1, 5, 9), better, run("a", 10)};
  const HistoryScore score = score_history(h);
  CHECK(score.scored == 2);
  CHECK(score.calibrated == 1);
  CHECK(score.median_error_calibrated == 0);
  CHECK(score.median_error == Approx(0.25));
}

TEST_CASE("records are read back, what is none is passed over") {
  HistoryRecord never = forecast("a", 9, 10, std::numeric_limits<double>::infinity());
  never.cost_usd = Quantiles{1, 1, 1, 2};
  const std::string text = to_line(never) + "{\"record\":\"forecast\",\"schema_version\":2}\n" +
                           "half a li\n" + to_line(run("a", 3)) + "{\"torn";
  const History h = parse_history(text);
  REQUIRE(h.records.size() == 2);
  CHECK(h.passed_over == 3);
  CHECK(to_line(h.records[0]) == to_line(never));
  CHECK(h.records[0].time_seconds.p95 == std::numeric_limits<double>::infinity());
  CHECK(h.records[1].directory == "runs/a");
}

TEST_CASE("a flipped digit of the history is passed over, not believed") {
  std::string text = to_line(run("a", 3));
  const std::size_t digit = text.find("\"p50\":3.0");
  REQUIRE(digit != std::string::npos);
  text[digit + 6] = '2';
  const History h = parse_history(text + to_line(run("b", 4)));
  CHECK(h.records.size() == 1);
  CHECK(h.passed_over == 1);
}

TEST_CASE("a decision is scored by the end of its own run, where that kept its plan") {
  const auto decision = [](const std::string& plan, double p50) {
    HistoryRecord r = forecast(plan, p50 - 1, p50, p50 + 1);
    r.kind = HistoryRecord::Kind::decision;
    r.directory = "runs/a";
    return r;
  };
  History h;
  SECTION("another run of the plan says nothing of it") {
    HistoryRecord elsewhere = run("four", 50);
    elsewhere.directory = "runs/b";
    HistoryRecord here = run("four", 10.5);
    here.directory = "runs/a";
    h.records = {decision("four", 10), elsewhere, here};
    const HistoryScore score = score_history(h);
    REQUIRE(score.forecasts.size() == 1);
    REQUIRE(score.forecasts[0].run);
    CHECK(score.forecasts[0].inside);
    CHECK(score.forecasts[0].error == Approx(10 / 10.5 - 1));
  }
  SECTION("a run that ended under another plan is no answer, nor is a later one in its place") {
    HistoryRecord other = run("eight", 8), again = run("four", 10);
    other.directory = again.directory = "runs/a";
    h.records = {decision("four", 10), other, again};
    CHECK(score_history(h).scored == 0);
  }
  SECTION("it is read back as one") {
    const History read = parse_history(to_line(decision("four", 10)));
    REQUIRE(read.records.size() == 1);
    CHECK(read.records[0].kind == HistoryRecord::Kind::decision);
    CHECK(read.records[0].directory == "runs/a");
  }
}

}  // namespace reckon
