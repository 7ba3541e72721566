#include "sim/measurement/run/spending.h"

#include <algorithm>
#include <utility>

#include "sim/measurement/run/bill.h"

namespace reckon {

RunSpending::RunSpending(RunRates rates, const std::vector<RunRecord>& runs,
                         const std::vector<EndRecord>& ends, Seconds now)
    : rates_(std::move(rates)), since_(runs.empty() && ends.empty() ? Seconds{0} : now) {
  // The first start of all is the clock's zero; a later part begins with its first start.
  const auto begins_behind = [&](const EndRecord* end) -> std::optional<Seconds> {
    if (end == nullptr) return runs.empty() ? std::nullopt : std::optional(Seconds{0});
    for (const RunRecord& run : runs)
      if (run.attempt > end->attempt) return run.at;
    return std::nullopt;
  };
  const EndRecord* last = nullptr;
  for (const EndRecord& end : ends) {
    const Seconds begin = begins_behind(last).value_or(end.at);
    if (end.spent)
      before_ = to_nano_usd(Usd{*end.spent});
    else
      before_ += charged(begin, end.at);
    last = &end;
  }
  if (const auto killed = begins_behind(last)) since_ = std::min(now, *killed);
}

NanoUsd RunSpending::at(Seconds until) const {
  return before_ + charged(since_, std::max(since_, until));
}

NanoUsd RunSpending::charged(Seconds begin, Seconds end) const {
  Measurements part;
  part.runs.emplace_back();
  part.ends.emplace_back();
  part.ends.back().at = end - begin;
  RunRates rates = rates_;
  for (PoolRates& pool : rates.pools)
    if (pool.reservation && pool.reservation->until)
      pool.reservation->until = std::max(Seconds{0}, Seconds{*pool.reservation->until} - begin);
  return bill_of(rates, part).total;
}

}  // namespace reckon
