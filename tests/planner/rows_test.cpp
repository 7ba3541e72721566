#include "planner/answer/rows.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <map>

#include "planner/planner.h"
#include "planner/small_spaces.h"

// Which forecasts become the rows of an answer.
using namespace reckon;
using namespace reckon::test;

namespace {

planner::RankedPlan point(double seconds, double usd) {
  planner::RankedPlan p;
  p.result.candidate.split = std::uint32_t(seconds);
  p.result.forecast.time_seconds.mean = seconds;
  p.result.forecast.cost_usd.emplace().mean = usd;
  return p;
}

std::vector<double> costs_of(const std::vector<planner::RankedPlan>& front) {
  std::vector<double> costs;
  for (const planner::RankedPlan& p : front) costs.push_back(p.result.forecast.cost_usd->mean);
  return costs;
}

}  // namespace

TEST_CASE("plans within 1 % on the same nodes are one row, and none is lost") {
  SmallSpace s = every_place();
  s.deadline = s.budget = "";
  const planner::Answer answer = answer_of(small_text(s), shipped_catalog(), 1000);
  std::size_t in_rows = 0;
  for (const planner::RankedPlan& row : answer.plans) {
    in_rows += 1 + row.equals.size();
    for (const planner::RankedPlan& other : row.equals) {
      CHECK(planner::same_hardware(other.hardware, row.hardware));
      CHECK(other.split.nodes == row.split.nodes);
      CHECK(other.offer.region == row.offer.region);
      CHECK(other.result.score >= row.result.score);
      CHECK(other.result.forecast.cost_usd->mean ==
            Approx(row.result.forecast.cost_usd->mean).epsilon(0.0101));
    }
  }
  std::size_t finite = 0;
  for (const planner::Evaluated& e : answer.search.finished)
    finite += e.meets_all() && std::isfinite(e.score) ? 1 : 0;
  CHECK(in_rows == finite);
  CHECK(answer.best_by.empty());  // all are rows
}

TEST_CASE("the best of each provider and way of buying is a row of its own") {
  SmallSpace s = every_place();
  s.deadline = s.budget = "";
  const planner::Answer all = answer_of(small_text(s), shipped_catalog(), 1000);
  std::map<std::string, double> least;  // by what a plan may be the best of
  for (const planner::RankedPlan& row : all.plans)
    for (const std::string& wish : {"on " + std::string(to_text(row.hardware.provider)),
                                    std::string(to_text(row.offer.pricing))})
      least.try_emplace(wish, row.result.score);
  REQUIRE(least.size() == 3);  // one provider, two ways of buying
  const planner::Answer one = answer_of(small_text(s), shipped_catalog(), 1);
  REQUIRE(one.plans.size() == 1);
  REQUIRE_FALSE(one.best_by.empty());
  for (const planner::BestBy& best : one.best_by) {
    INFO(best.what);
    if (best.what != "in half the time") {
      CHECK(best.plan.result.score == Approx(least.at(best.what)).epsilon(0.01));
    } else {
      CHECK(best.plan.result.forecast.time_seconds.p95 <=
            one.plans.front().result.forecast.time_seconds.p95 / 2);
    }
    CHECK(best.plan.result.score >= one.plans.front().result.score);
  }
}

TEST_CASE("a front ends where the next 1 % costs more than 5 %") {
  // 8 % of cost for 1 % of time, then 2, then time for nothing at the cheap end.
  std::vector<planner::RankedPlan> front{point(100, 216), point(110, 100), point(200, 25),
                                         point(400, 12), point(4000, 11.9)};
  const auto shown = planner::without_absurd_ends(front, nullptr);
  CHECK(costs_of(shown) == std::vector<double>{100, 25, 12});
  // What was chosen stays, wherever it lies.
  CHECK(costs_of(planner::without_absurd_ends(front, &front.back().result.candidate)).back() ==
        11.9);
  CHECK(costs_of(planner::without_absurd_ends(front, &front.front().result.candidate)).front() ==
        216);
  // Of two that are as fast the cheaper stands for both.
  front.insert(front.begin() + 2, point(112, 60));
  CHECK(costs_of(planner::without_absurd_ends(front, nullptr)) == std::vector<double>{60, 25, 12});
  CHECK(planner::without_absurd_ends({point(1, 1000), point(1.01, 1)}, nullptr).size() == 2);
  // Where each is next to the next, what is shown still spans the front.
  std::vector<planner::RankedPlan> dense;
  for (int k = 0; k <= 20; ++k)
    dense.push_back(point(1000 * std::pow(1.04, k), 100 * std::pow(1.04, -k)));
  const auto thinned = planner::without_absurd_ends(dense, nullptr);
  CHECK(thinned.size() == 11);
  CHECK(costs_of(thinned).front() == 100);
  CHECK(costs_of(thinned).back() == Approx(100 * std::pow(1.04, -20)));
}
