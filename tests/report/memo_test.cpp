#include "report/memo/memo.h"

#include <catch2/catch.hpp>

#include "report/example_forecast.h"
#include "support/golden.h"
#include "support/plans.h"

using namespace reckon;

namespace {

Plan example_plan() {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 3, 2);
  Expectation e;
  e.text = "p95(time) <= 20h";
  e.metric = Metric::time;
  e.statistic = Statistic::p95;
  e.value = 72'000;
  plan.expect.push_back(e);  // 86,400 s: does not hold
  return plan;
}

}  // namespace

TEST_CASE("the question of a scenario is the first paragraph of its opening comment") {
  CHECK(question_of("# Question: how long?\n#   reckon simulate a.yaml\nname: a\n") == "how long?");
  CHECK(question_of("# How fast is\n# reckon itself?\n") == "How fast is reckon itself?");
  CHECK(question_of("# Question: how long,\n#   and how much?\n#\n# More.\nname: a\n") ==
        "how long, and how much?");
  CHECK(question_of("# Why?\nname: a\n# Later.\n") == "Why?");
  CHECK(question_of("#\tWhy?\r\n") == "Why?");
  CHECK(question_of("name: a\n# Not at the top.\n").empty());
  CHECK(question_of("").empty());
  CHECK(question_of("#").empty());
}

TEST_CASE("a memo has question, answer, alternatives, risks, assumptions and prices") {
  const Plan plan = example_plan();
  const Forecast forecast = test::example_forecast();
  Sweep sweep{"example", {"cluster.pools.workers.nodes"}, {}};
  sweep.points.push_back({{"3"}, forecast, ""});
  sweep.points.push_back({{"99"}, std::nullopt, "no such | count"});
  const std::string memo = memo_markdown({plan, forecast, "How long, and how much?", &sweep});
  test::check_golden("report/golden/memo.md", memo);
  CHECK(memo.find("no such \\| count") != std::string::npos);  // a cell does not end there
  CHECK(memo.find("| **no**") != std::string::npos);
}

TEST_CASE("a memo of what does not fit says so and assumes nothing") {
  const Plan plan = example_plan();
  Forecast f = test::example_forecast();
  f.feasible = false;
  const std::string memo = memo_markdown({plan, f, "", nullptr});
  CHECK(memo.find("The plan does not fit") != std::string::npos);
  CHECK(memo.find("## Question") == std::string::npos);
  CHECK(memo.find("Assumptions") == std::string::npos);
}
