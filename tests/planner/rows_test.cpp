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

planner::Answer all_rows(const std::string& text, std::size_t keep) {
  planner::PlannerOptions how;
  how.threads = 1;
  how.keep = keep;
  how.exact_up_to = 1000;
  const auto network = make_fluid_network();
  auto answer =
      planner::plan(question_of(text, shipped_catalog()), shipped_catalog(), *network, how);
  REQUIRE(answer);
  return std::move(*answer);
}

planner::RankedPlan point(double seconds, double usd) {
  planner::RankedPlan p;
  p.result.candidate.shape = std::uint32_t(seconds);
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
  const planner::Answer answer = all_rows(small_text(s), 1000);
  std::size_t in_rows = 0;
  for (const planner::RankedPlan& row : answer.plans) {
    in_rows += 1 + row.equals.size();
    for (const planner::RankedPlan& other : row.equals) {
      CHECK(planner::same_hardware(other.hardware, row.hardware));
      CHECK(other.shape.nodes == row.shape.nodes);
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
  const planner::Answer all = all_rows(small_text(s), 1000);
  std::map<std::string, double> least;  // by what a plan may be the best of
  for (const planner::RankedPlan& row : all.plans)
    for (const std::string& wish : {"on " + std::string(to_text(row.hardware.provider)),
                                    std::string(to_text(row.offer.pricing))})
      least.try_emplace(wish, row.result.score);
  REQUIRE(least.size() == 3);  // one provider, two ways of buying
  const planner::Answer one = all_rows(small_text(s), 1);
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
}
