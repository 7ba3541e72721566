#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/cluster/life/state.h"

// Machines that are held until a day and go then, and data that leaves its region.
namespace reckon {

SimTime Life::block_end(const Node& node, const Pool& pool) const {
  const auto& held = pool.plan->reservation;
  if (!held || int(node.slot) >= held->nodes) return SimTime::max();
  const auto goes = held->goes();
  if (!goes) return SimTime::max();
  const SimTime end = SimTime{} + to_clock(*goes);
  return node.requested >= end ? SimTime::max() : end;  // asked for afterwards: not of the block
}

bool Life::is_over(const Pool& pool) const {
  const auto& held = pool.plan->reservation;
  if (!held || pool.plan->pricing != CapacityType::reserved) return false;
  const auto goes = held->goes();
  return goes && now_ >= SimTime{} + to_clock(*goes);
}

std::string reservation_is_over(const Pool& pool) {
  return fmt::format("the reservation of pool '{}' ended before the job did", pool.plan->name);
}

/// A job that holds nodes of it loses them in this moment too, one event each.
void Life::give_up_what_needs(const Pool& pool) {
  const auto p = std::size_t(&pool - cluster_.pools.data());
  for (const std::uint32_t k : order_) {
    Job& job = jobs_[k];
    if (!job.submitted() || job.done() || job.lacks(p) == 0) continue;
    int held = 0;
    for (const Holding& holding : job.holdings) held += holding.held;
    if (job.active() && held > 0) continue;  // it goes on with the nodes that it has
    give_up(job, reservation_is_over(pool));
  }
}

void Life::on_block_ends(Node& node) {
  recorder_.mark("block ends", int(node.pool), int(node.slot), now_);
  // Announced from the first day on, as maintenance is: the job itself chooses when it saves.
  if (node.held && now_ < node.goes_at) evacuate(node, Interruption::maintenance, node.goes_at);
  schedule(node.goes_at, EventKind::taken, cluster_.index_of(node), node.lease);
}

/// A checkpoint leaves the region at each save, and the bucket's at each restore; data at each
/// step, done anew or not; gradients cross at each step. One save follows each whole interval of
/// work; one that would fall on the very end is not made. Saves between two intervals, where a job
/// was interrupted, are too many by at most one an interruption.
NanoUsd Life::egress_of(const Job& job, AcceleratorTime work) const {
  const EgressRules& rules = rented_.egress;
  if (!rules.any() || job.accelerators() == 0) return {};
  const auto done = static_cast<std::int64_t>(work.n / job.accelerators());  // ns of the whole job
  double usd = 0;
  if (rules.checkpoints && job.cycle.on()) {
    const std::int64_t saves =
        std::max<std::int64_t>(0, (done - 1) / job.cycle.interval.count()) + job.emergency_saves;
    usd += double(saves + job.restores) * job.checkpoint_size.v / 1e9 * rules.between_regions.value;
  }
  if (job.progress.total.count() > 0) {
    const double steps = double(job.steps) * double(done) / double(job.progress.total.count());
    if (rules.data) usd += steps * job.data_a_step.v / 1e9 * rules.between_regions.value;
    if (rules.zones > 1) usd += steps * job.gradients_a_step.v / 1e9 * rules.between_zones.value;
  }
  return to_nano_usd(Usd{usd});
}

}  // namespace reckon
