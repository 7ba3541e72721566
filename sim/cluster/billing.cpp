#include "sim/cluster/billing.h"

#include <algorithm>

namespace reckon {

SimDuration billed_time(const BillingRules& rules, SimDuration time, bool reclaimed) {
  if (reclaimed && time < to_clock(rules.free_if_reclaimed_within)) return SimDuration{0};
  const SimDuration charged = std::max(time, to_clock(rules.minimum));
  const SimDuration unit = std::max(to_clock(rules.granularity), SimDuration{1});
  return (charged + unit - SimDuration{1}) / unit * unit;
}

BillingRules billing_of(BillingRules rules, Seconds minimum_rental) {
  rules.minimum = std::max(rules.minimum, minimum_rental);
  return rules;
}

LeaseCharge charge_lease(const NodePrice& price, const BillingRules& rules, const Lease& lease,
                         const PlannedReservation* reserved, SimDuration reserved_for) {
  LeaseCharge charged;
  charged.billed = billed_time(rules, lease.time - lease.away, lease.reclaimed);
  const SimDuration busy = std::min(lease.busy, charged.billed);
  SimDuration term{0}, busy_in_term{0};
  HourlyRate rate;
  if (reserved != nullptr && charged.billed > SimDuration{0}) {
    rate = reserved->price;
    term = std::clamp(reserved_for, SimDuration{0}, charged.billed);
    busy_in_term = SimDuration{
        static_cast<std::int64_t>(Int128{busy.count()} * term.count() / charged.billed.count())};
  }
  const auto machines = [&](SimDuration in_term, SimDuration after) {
    return charge(rate, in_term) + charge(price.machine, after);
  };
  charged.machines = machines(busy_in_term, busy - busy_in_term);
  charged.accelerators = charge(price.accelerators, busy - busy_in_term);
  charged.reserved = term;
  const SimDuration after = charged.billed - term;
  const NanoUsd whole = machines(term, after) + charge(price.accelerators, after);
  charged.idle = whole - charged.machines - charged.accelerators;
  if (lease.standby.count() > 0 && charged.billed > SimDuration{0}) {
    const Int128 standby = std::min(lease.standby, charged.billed).count();
    charged.spares = {std::min(whole.n * standby / charged.billed.count(), charged.idle.n)};
    charged.idle = charged.idle - charged.spares;
  }
  return charged;
}

NanoUsd charge_unused(const PlannedReservation& reservation, NodeTime used) {
  if (!reservation.whole || !reservation.until) return {};
  const Int128 term = to_clock(*reservation.until - reservation.from).count();
  const Int128 unused = std::max(Int128{0}, term * reservation.nodes - used.n);
  constexpr Int128 kHour = 3'600'000'000'000;
  return {(unused * reservation.price.nano_usd_per_hour + kHour / 2) / kHour};
}

}  // namespace reckon
