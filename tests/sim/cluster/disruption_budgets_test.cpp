#include "sim/cluster/autoscalers/disruption_budgets.h"

#include <catch2/catch.hpp>

// The examples of karpenter.sh, "Disruption", "NodePool Disruption Budgets".
using namespace reckon;
using namespace std::chrono_literals;

namespace {

/// A Monday.
constexpr std::chrono::sys_seconds kMonday{
    std::chrono::sys_days{std::chrono::year{2026} / 11 / 30}};

/// The page's example: 20 % of the empty and drifted, 5 of all, none of the underutilized in the
/// first ten minutes of a day.
std::vector<DisruptionBudget> example() {
  using R = DisruptionReason;
  return {{.share = 0.20, .reasons = {R::Empty, R::Drifted}},
          {.nodes = 5},
          {.nodes = 0, .schedule = "@daily", .duration = 10min, .reasons = {R::Underutilized}}};
}

int allowed(const std::vector<DisruptionBudget>& budgets, int total, DisruptionReason reason,
            SimDuration at = 12h, int disrupting = 0) {
  return allowed_disruptions(budgets, {total, disrupting}, reason, kMonday, SimTime{at});
}

}  // namespace

TEST_CASE("of 19 nodes 20 % are 4: shares are rounded up") {
  CHECK(allowed(example(), 19, DisruptionReason::Empty) == 4);
  CHECK(allowed(example(), 19, DisruptionReason::Drifted) == 4);
  CHECK(allowed(example(), 20, DisruptionReason::Empty) == 4);
  CHECK(allowed(example(), 21, DisruptionReason::Empty) == 5);
}

TEST_CASE("the second budget is a ceiling of 5 above 25 nodes") {
  CHECK(allowed(example(), 25, DisruptionReason::Empty) == 5);
  CHECK(allowed(example(), 26, DisruptionReason::Empty) == 5);
  CHECK(allowed(example(), 1000, DisruptionReason::Empty) == 5);
  CHECK(allowed(example(), 1000, DisruptionReason::Underutilized) == 5);
}

TEST_CASE("the last blocks the underutilized in the first ten minutes of the day") {
  CHECK(allowed(example(), 30, DisruptionReason::Underutilized, 0min) == 0);
  CHECK(allowed(example(), 30, DisruptionReason::Underutilized, 10min - 1s) == 0);
  CHECK(allowed(example(), 30, DisruptionReason::Underutilized, 10min) == 5);
  CHECK(allowed(example(), 30, DisruptionReason::Underutilized, 24h + 5min) == 0);
  CHECK(allowed(example(), 30, DisruptionReason::Empty, 0min) == 5);
}

TEST_CASE("no disruption on weekdays during business hours") {
  const std::vector<DisruptionBudget> budgets{
      {.share = 0.10}, {.nodes = 0, .schedule = "0 9 * * mon-fri", .duration = 8h}};
  CHECK(allowed(budgets, 10, DisruptionReason::Empty, 9h - 1s) == 1);
  CHECK(allowed(budgets, 10, DisruptionReason::Empty, 9h) == 0);
  CHECK(allowed(budgets, 10, DisruptionReason::Empty, 17h - 1s) == 0);
  CHECK(allowed(budgets, 10, DisruptionReason::Empty, 17h) == 1);
  CHECK(allowed(budgets, 10, DisruptionReason::Empty, 4 * 24h + 12h) == 0);  // Friday
  CHECK(allowed(budgets, 10, DisruptionReason::Empty, 5 * 24h + 12h) == 1);  // Saturday
}

TEST_CASE("nodes that are going count, and none of it is a tenth") {
  CHECK(allowed({}, 30, DisruptionReason::Empty, 12h, 2) == 1);
  CHECK(allowed({}, 30, DisruptionReason::Empty, 12h, 3) == 0);
  CHECK(allowed({}, 1, DisruptionReason::Empty) == 1);
  CHECK(allowed({{.nodes = 0}}, 30, DisruptionReason::Empty) == 0);
  // Budgets of other reasons leave all nodes free.
  CHECK(allowed({{.nodes = 0, .reasons = {DisruptionReason::Drifted}}}, 7,
                DisruptionReason::Empty) == 7);
}
