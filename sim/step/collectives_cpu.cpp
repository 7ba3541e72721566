#include "sim/step/collectives_cpu.h"

#include <algorithm>
#include <iterator>

namespace reckon {

Collective direct_all_reduce(const Fabric& f, Bytes size, bool fold) {
  Collective c = all_to_all(f, size, fold);  // the parts to those who add them up
  Collective back = all_to_all(f, size, fold);
  std::ranges::move(back.phases, std::back_inserter(c.phases));
  c.steps += back.steps;
  c.sent_by_rank += back.sent_by_rank;
  return c;
}

bool summed_directly(Bytes size) {
  constexpr Bytes kFirstWindow{14'600};
  return size <= kFirstWindow;
}

bool runs_on_cpus(AllReduceKind kind) {
  return kind == AllReduceKind::automatic || kind == AllReduceKind::ring;
}

WorkerAllReduce all_reduce_of_workers(const Plan& plan, const PlannedStrategy& strategy,
                                      const Fabric& fabric, Bytes size, const NetworkModel& model) {
  AllReduceKind kind = strategy.all_reduce;
  if (kind == AllReduceKind::automatic && !computing_pools(plan).front()->accelerator) {
    if (summed_directly(size)) {
      const Collective c = direct_all_reduce(fabric, size);
      return {"direct", makespan(c, model), c.sent_by_rank};
    }
    kind = AllReduceKind::ring;
  }
  const AllReduceChoice choice = all_reduce(fabric, size, kind, model);
  return {to_text(choice.kind), choice.time, choice.sent_by_rank};
}

}  // namespace reckon
