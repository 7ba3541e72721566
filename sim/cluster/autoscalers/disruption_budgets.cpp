#include "sim/cluster/autoscalers/disruption_budgets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"
#include "sim/scenario/cron_schedule.h"

namespace reckon {
namespace {

constexpr double kDefaultShare = 0.10;  // of the nodes, 0..1: disruption_budgets.h

bool counts(const DisruptionBudget& budget, DisruptionReason reason,
            std::optional<std::chrono::sys_seconds> begins, SimTime now) {
  const bool of_reason =
      budget.reasons.empty() || std::ranges::find(budget.reasons, reason) != budget.reasons.end();
  if (!of_reason || budget.schedule.empty()) return of_reason;
  const auto schedule = CronSchedule::parse(budget.schedule);
  RECKON_CHECK(schedule.has_value() && begins);
  using std::chrono::floor, std::chrono::seconds;
  return schedule->covers(*begins + floor<seconds>(now.time_since_epoch()),
                          floor<seconds>(budget.duration));
}

int rounded_up(double share, int total) {
  constexpr double kRounding = 1e-9;  // 0.2 * 20 is 4
  return static_cast<int>(std::ceil(share * total - kRounding));
}

}  // namespace

int allowed_disruptions(const std::vector<DisruptionBudget>& budgets, NodeCounts nodes,
                        DisruptionReason reason, std::optional<std::chrono::sys_seconds> begins,
                        SimTime now) {
  int least = std::numeric_limits<int>::max();
  for (const DisruptionBudget& budget : budgets)
    if (counts(budget, reason, begins, now))
      least = std::min(least, budget.share ? rounded_up(*budget.share, nodes.total) : budget.nodes);
  if (budgets.empty()) least = rounded_up(kDefaultShare, nodes.total);
  return std::max(
      0, least == std::numeric_limits<int>::max() ? nodes.total : least - nodes.disrupting);
}

}  // namespace reckon
