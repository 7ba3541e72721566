#include "report/run/decision.h"

#include <fmt/format.h>

#include <cmath>

#include "report/run/status.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using SystemTime = std::chrono::system_clock::time_point;

/// Whole percents; what is not quite certain is not told as if it were.
std::string chance_text(double share) {
  if (share > 0 && share < 0.01) return "<1 %";
  if (share < 1 && share > 0.99) return ">99 %";
  return fmt::format("{:.0f} %", 100 * share);
}

std::string limit_words(const planner::RunLimits& limits, SystemTime begin, SystemTime now) {
  std::string text;
  if (limits.deadline) {
    const SystemTime at =
        begin + std::chrono::duration_cast<SystemTime::duration>(*limits.deadline);
    const bool near = at < now + std::chrono::minutes(10);
    text = time_of_day(at, now, near);
  }
  if (limits.budget) text += (text.empty() ? "" : " or ") + format_usd(*limits.budget);
  return text;
}

std::string more_text(const DecisionRecord& d) {
  if (!d.cost || !d.kept_cost) return "";
  const double more = *d.cost - *d.kept_cost;
  return fmt::format(", {}{}", more < 0 ? "-" : "+", format_usd(Usd{std::abs(more)}));
}

}  // namespace

std::string decision_line(const DecisionRecord& d, const planner::RunLimits& limits,
                          SystemTime begin, SystemTime now) {
  const std::string of = limit_words(limits, begin, now);
  const std::string missed = fmt::format("{} to miss {}: ", chance_text(d.kept_miss), of);
  if (d.what.empty()) return missed + "no other number of workers and no other layout helps";
  const std::string then = fmt::format("{}{} from the next checkpoint", missed, d.what);
  if (!d.miss) return then;  // nobody forecast it
  return fmt::format("{}: {} {} likely{}", then, of, chance_text(1 - *d.miss), more_text(d));
}

}  // namespace reckon
