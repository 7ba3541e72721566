#pragma once
#include "sim/step/network/collectives.h"

// The times of the collectives' graphs (collectives.h) in closed form, for what asks often. Tests
// hold them to the graphs on both network models.
namespace reckon {

Seconds all_gather_time(const Fabric& fabric, Bytes size);
Seconds reduce_scatter_time(const Fabric& fabric, Bytes size);
Seconds all_to_all_time(const Fabric& fabric, Bytes size);
Seconds send_time(const Fabric& fabric, Bytes size);

/// One round of a ring: every rank sends `size` to the next one.
Seconds ring_hop_time(const Fabric& fabric, Bytes size);

struct TimedAllReduce {
  AllReduceKind kind = AllReduceKind::ring;
  Seconds time{};
};
/// The one asked for; `automatic`: the fastest of kAllReduces that it may take. `time` of a kind.
template <class Time>
TimedAllReduce chosen_all_reduce(const Fabric& fabric, AllReduceKind kind, Time time) {
  if (kind != AllReduceKind::automatic) return {kind, time(kind)};
  TimedAllReduce best{.time = Seconds::max()};
  for (const AllReduceAlgorithm& each : kAllReduces) {
    if (!each.automatic || !each.runs_on(fabric)) continue;
    const Seconds taken = time(each.kind);
    if (taken < best.time) best = {each.kind, taken};
  }
  return best;
}
TimedAllReduce all_reduce_time(const Fabric& fabric, Bytes size, AllReduceKind kind);

/// Ranks 0, stride, 2 stride, ... (`size` of them) of a job whose ranks fill its nodes one after
/// the other, together with every other group like it: how many of them share a node, and their
/// part of its NIC while all groups do the same at once.
Fabric group_of(const Fabric& job, std::int64_t stride, std::int64_t size);

}  // namespace reckon
