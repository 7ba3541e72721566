#pragma once
#include "sim/base/money.h"
#include "sim/base/quantity.h"
#include "sim/cluster/life/life.h"
#include "sim/scenario/plan.h"

// What the provider charges for one lease of one node.
namespace reckon {

/// A lease runs from the request to the deletion and is charged only if the node became ready. We
/// know one delay, request to schedulable; most of it (boot, drivers) is time in which the provider
/// counts the machine as running.
struct Lease {
  SimDuration time{};  // request to deletion
  SimDuration away{};  // of it: the machine was stopped for host maintenance, which is not charged
  SimDuration
      busy{};  // of it: the node served the job while it initialised, trained, saved or restored
  bool reclaimed = false;  // ended by the provider
  SimDuration standby{};   // of it: ready beside a job that has warm spares
};

struct LeaseCharge {
  SimDuration billed{};
  SimDuration reserved{};          // of it, at the reservation's price
  NanoUsd machines, accelerators;  // for the busy time
  NanoUsd spares;                  // for the time on standby
  NanoUsd idle;                    // all the rest of the charge: provisioning, waiting, rounding up
  NanoUsd total() const { return machines + accelerators + spares + idle; }
};

/// Time rounded up to the provider's granularity, at least its minimum; nothing for a node that the
/// provider reclaimed before `free_if_reclaimed_within` had passed.
SimDuration billed_time(const BillingRules& rules, SimDuration time, bool reclaimed);

/// The provider's rules for a node that is rented for at least so long
/// (PlannedPool::minimum_rental).
BillingRules billing_of(BillingRules rules, Seconds minimum_rental);

/// `reserved`: the node holds a place of a reservation (nullptr: none), whose price is that of the
/// whole node for the first `reserved_for` of what is billed. It counts as the machine's. Busy time
/// is taken to be spread evenly over the lease.
LeaseCharge charge_lease(const NodePrice& price, const BillingRules& rules, const Lease& lease,
                         const PlannedReservation* reserved = nullptr,
                         SimDuration reserved_for = SimDuration::max());

/// What is paid beside the leases for a reservation that is paid whole: its machines' time from its
/// first day to its last, less `used`. 0 for others.
NanoUsd charge_unused(const PlannedReservation& reservation, NodeTime used);

}  // namespace reckon
