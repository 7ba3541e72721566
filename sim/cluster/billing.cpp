#include "sim/cluster/billing.h"

#include <algorithm>

namespace reckon {

SimDuration billed_time(const BillingRules& rules, SimDuration time, bool reclaimed) {
  if (reclaimed && time < to_clock(rules.free_if_reclaimed_within)) return SimDuration{0};
  const SimDuration charged = std::max(time, to_clock(rules.minimum));
  const SimDuration unit = std::max(to_clock(rules.granularity), SimDuration{1});
  return (charged + unit - SimDuration{1}) / unit * unit;
}

LeaseCharge charge_lease(const NodePrice& price, const BillingRules& rules, const Lease& lease) {
  LeaseCharge charged;
  charged.billed = billed_time(rules, lease.time - lease.away, lease.reclaimed);
  const SimDuration busy = std::min(lease.busy, charged.billed);
  charged.machines = charge(price.machine, busy);
  charged.accelerators = charge(price.accelerators, busy);
  const NanoUsd whole =
      charge(price.machine, charged.billed) + charge(price.accelerators, charged.billed);
  charged.idle = whole - charged.machines - charged.accelerators;
  return charged;
}

}  // namespace reckon
