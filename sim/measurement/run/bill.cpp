#include "sim/measurement/run/bill.h"

#include <algorithm>
#include <map>

#include "sim/cluster/billing.h"
#include "sim/measurement/run/timeline.h"

namespace reckon {
namespace {

struct Stretch {
  SimDuration begin{}, end{};  // since the first start
};

class Biller {
 public:
  Biller(const RunRates& rates, const Measurements& run)
      : rates_(rates), run_(run), timeline_(timeline_of(run)), end_(to_clock(run.ends.back().at)) {}

  RunBill make() {
    for (const PoolRates& pool : rates_.pools) add_pool(pool);
    add(CostPart::management, charge(rates_.billing.management, end_));
    add(CostPart::storage, charge(rates_.storage, end_));
    return std::move(bill_);
  }

 private:
  void add(CostPart part, NanoUsd usd) {
    bill_.parts[std::size_t(part)] += usd;
    bill_.total += usd;
  }

  /// When the nodes of a pool were asked for, by slot.
  std::map<int, std::vector<SimDuration>> requests_of(const PoolRates& pool) const {
    std::map<int, std::vector<SimDuration>> requests;
    for (const ProvisioningRecord& p : run_.provisioning)
      if (p.pool == pool.pool && p.ready) requests[p.node].push_back(to_clock(p.at));
    for (int node = 0; node < pool.nodes; ++node)
      if (requests[node].empty()) requests[node].push_back(SimDuration{0});
    return requests;
  }

  void add_pool(const PoolRates& pool) {
    double hours = 0;
    for (const auto& [node, begins] : requests_of(pool)) {
      std::vector<SimDuration> ordered = begins;
      std::sort(ordered.begin(), ordered.end());
      for (std::size_t k = 0; k < ordered.size(); ++k) {
        const Stretch lease{ordered[k], k + 1 < ordered.size() ? ordered[k + 1] : end_};
        const bool reserved = pool.reservation && node < pool.reservation->nodes;
        hours += add_lease(pool, lease, reserved);
      }
    }
    bill_.node_hours.emplace_back(pool.pool, hours);
  }

  double add_lease(const PoolRates& pool, const Stretch& lease, bool reserved) {
    SimDuration term = SimDuration::max();
    if (reserved && pool.reservation->until)
      term = to_clock(*pool.reservation->until) - lease.begin;
    const SimDuration time = lease.end - lease.begin;
    const LeaseCharge charged = charge_lease(
        pool.price, billing_of(rates_.billing, pool.minimum_rental),
        {time, {}, time - waited_in(lease), false}, reserved ? &*pool.reservation : nullptr, term);
    add(CostPart::machines, charged.machines);
    add(CostPart::accelerators, charged.accelerators);
    add(CostPart::idle, charged.idle);
    return to_seconds(charged.billed).count() / 3600;
  }

  SimDuration waited_in(const Stretch& lease) const {
    SimDuration waited{0};
    for (const Span& s : timeline_.spans) {
      const bool waits =
          s.category == to_text(Badput::provisioning) || s.category == to_text(Badput::waiting);
      if (s.pool >= 0 || !waits) continue;
      const SimDuration begin = std::max(s.begin - SimTime{}, lease.begin);
      const SimDuration end = std::min(s.end - SimTime{}, lease.end);
      waited += std::max(SimDuration{0}, end - begin);
    }
    return waited;
  }

  const RunRates& rates_;
  const Measurements& run_;
  const Timeline timeline_;
  const SimDuration end_;
  RunBill bill_;
};

}  // namespace

RunBill bill_of(const RunRates& rates, const Measurements& run) {
  return Biller(rates, run).make();
}

}  // namespace reckon
