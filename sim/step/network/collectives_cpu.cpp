#include "sim/step/network/collectives_cpu.h"

namespace reckon {

bool summed_directly(Bytes size) {
  constexpr Bytes kFirstWindow{14'600};
  return size <= kFirstWindow;
}

bool runs_on_cpus(AllReduceKind kind) {
  return kind == AllReduceKind::automatic || kind == AllReduceKind::ring;
}

WorkerAllReduce all_reduce_of_workers(const Plan& plan, const PlannedStrategy& strategy,
                                      const Fabric& fabric, Bytes size,
                                      const CollectiveCost& cost) {
  AllReduceKind kind = strategy.all_reduce;
  if (kind == AllReduceKind::automatic && !computing_pools(plan).front()->accelerator) {
    if (summed_directly(size))
      return {"direct", 2 * cost.all_to_all(fabric, size),
              sent_in_all_reduce(fabric, size, AllReduceKind::ring)};
    kind = AllReduceKind::ring;
  }
  const TimedAllReduce choice = cost.all_reduce(fabric, size, kind);
  return {to_text(choice.kind), choice.time, sent_in_all_reduce(fabric, size, choice.kind)};
}

}  // namespace reckon
