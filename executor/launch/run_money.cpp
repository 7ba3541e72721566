#include "executor/launch/run_money.h"

#include <fmt/format.h>

#include "sim/base/unit_text.h"

namespace reckon {

bool RunMoney::passes(Seconds now, Seconds step) const {
  constexpr Seconds kUntilNextLook{0.2};
  return budget_ && to_usd(spending_.at(now + kUntilNextLook + step + save_ + to_stop_)) > *budget_;
}

StopRequest RunMoney::request(StopRequest asked, Seconds now, Seconds step) {
  if (asked != StopRequest::none) return asked;
  out_ = out_ || passes(now, step);
  return out_ ? StopRequest::own : StopRequest::none;
}

std::string RunMoney::reason(Seconds now) const {
  return fmt::format(
      "{} of the budget of {} are spent: one more step and its checkpoint would pass it",
      format_usd(to_usd(spending_.at(now))), format_usd(*budget_));
}

std::string RunMoney::reason_not_to_start(Seconds now) const {
  return fmt::format(
      "{} of the budget of {} are spent: a start, one step and its checkpoint would pass it",
      format_usd(to_usd(spending_.at(now))), format_usd(*budget_));
}

}  // namespace reckon
