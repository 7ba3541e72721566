#include "sim/step/network/collectives_cpu.h"

namespace reckon {

bool summed_directly(Bytes size) {
  constexpr Bytes kFirstWindow{14'600};
  return size <= kFirstWindow;
}

bool runs_on_cpus(AllReduceKind kind) {
  return kind == AllReduceKind::automatic || kind == AllReduceKind::ring;
}

GradientSum gradient_sum(const Plan& plan, const PlannedStrategy& strategy) {
  return {strategy.all_reduce, !computing_pools(plan).front()->accelerator.has_value()};
}

}  // namespace reckon
