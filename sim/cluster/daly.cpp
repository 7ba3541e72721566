#include <cmath>

#include "sim/cluster/disruptions.h"
#include "sim/cluster/life/life.h"
#include "sim/cluster/placement.h"

// J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
// Future Generation Computer Systems 22 (2006) 303-312; J. W. Young, "A first order approximation
// to the optimum checkpoint interval", Communications of the ACM 17 (1974) 530-531.
namespace reckon {

// Eq. 37, with d the time of a save and M the mean time to interruption:
//   t = sqrt(2 d M) (1 + 1/3 sqrt(d / 2M) + 1/9 (d / 2M)) - d   for d < 2M;    t = M   for d >= 2M
// Daly's t is the time of computation between two saves, which is our interval. To first order it
// is Young's sqrt(2 d M).
Seconds optimal_checkpoint_interval(Seconds save, Seconds mtti) {
  const double d = save.count();
  const double m = mtti.count();
  if (m <= 0 || d <= 0 || mtti == Seconds::max()) return Seconds{0};
  if (d >= 2 * m) return mtti;
  const double x = d / (2 * m);
  return Seconds{std::sqrt(2 * d * m) * (1 + std::sqrt(x) / 3 + x / 9) - d};
}

namespace {

/// Reclaims of one node a second.
double reclaim_rate(const ReclaimRules& rules) {
  const ReclaimLaw law{rules.law};
  if (law.never()) return 0;
  if (!law.from_trace()) return 1 / law.mean().count();
  double events = 0;
  for (const auto& times : rules.trace) events += double(times.size());
  const double time = double(rules.trace.size()) * rules.trace_length.count();
  return time > 0 ? events / time : 0;
}

}  // namespace

// Interruptions of the job come from each node on its own, so their rates add up (exact for
// exponential laws, the long-run mean for others). Asynchronous training is interrupted by its
// chief and its servers only.
Seconds mean_time_to_interruption(const Plan& plan, const PlannedWorkload& job) {
  const Placement placement = place_gang(plan, request_of(job, {}));
  double rate = 0;
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    const PlannedPool& pool = plan.pools[p];
    const PoolShare& share = placement.pools[p];
    int nodes = share.nodes;
    if (!job.strategy.synchronous() && !share.servers) nodes = share.chief ? 1 : 0;
    if (share.beside) nodes = 0;
    double node = 0;
    if (pool.pricing == CapacityType::spot) node += reclaim_rate(plan.reclaim);
    if (plan.maintenance.on && has_maintenance(pool)) {
      const double events = 1 / plan.maintenance.every.value.count();
      (plan.maintenance.grouped && nodes > 0 ? rate : node) += events;
    }
    if (plan.failures.on) {
      node += double(pool.accelerators_per_node) / plan.failures.mtbf_per_accelerator.value.count();
    }
    rate += double(nodes) * node;
  }
  return rate > 0 ? Seconds{1 / rate} : Seconds::max();
}

}  // namespace reckon
