#include "sim/step/element_sizes.h"

#include <algorithm>

#include "sim/scenario/own_program.h"

namespace reckon {

Bytes ElementSizes::update_traffic() const {
  const Bytes copy = master.v > 0 ? weight : Bytes{0};
  const Bytes kept = master.v > 0 ? master : weight;
  return gradient + 2 * kept + 2 * optimizer + copy + update;
}

ElementSizes element_sizes(Precision precision, const OptimizerCost& optimizer, bool fp32_variables,
                           WideSums wide, bool on_cpus) {
  constexpr Bytes kFp32{4};
  ElementSizes e;
  e.activation = bytes_per_element(precision);
  e.optimizer = optimizer.state;
  e.update_flops = optimizer.flops;
  if (on_cpus && e.activation < kFp32) {
    e.rounds = true;
    e.activation = kFp32;
    if (!fp32_variables) e.master = kFp32;
  }
  if (fp32_variables || e.activation >= kFp32) {
    e.weight = e.gradient = kFp32;
  } else {
    e.weight = e.activation;
    e.gradient = wide == WideSums::none ? std::max(e.activation, Bytes{2}) : kFp32;
    e.master = kFp32;
  }
  e.gathered = wide == WideSums::all ? kFp32 : e.weight;
  e.exchanged = wide == WideSums::all ? kFp32 : e.activation;
  e.update = optimizer.gradient_reads * e.gradient + optimizer.traffic;
  return e;
}

bool fp32_variables(const PlannedStrategy& s) { return traits_of(s.kind).fp32_variables; }

WideSums wide_sums(const PlannedWorkload& job) {
  if (job.stack == kOwnDeviceStack) return WideSums::all;
  return job.fp32_gradients ? WideSums::gradients : WideSums::none;
}

ElementSizes element_sizes(const PlannedWorkload& job) {
  return element_sizes(job.precision, optimizer_cost(job.model, job.optimizer),
                       fp32_variables(job.strategy), wide_sums(job),
                       job.strategy.accelerators_per_worker == 0);
}

ElementSizes forward_sizes(Precision precision) {
  const Bytes element = bytes_per_element(precision);
  return {.activation = element, .weight = std::min(element, Bytes{4})};
}

ElementSizes with_stack(ElementSizes sizes, const FrameworkRules& framework) {
  // Said of fp32: copies of gradients are as wide as these.
  constexpr Bytes kFp32{4};
  sizes.buffers = framework.buffers_per_parameter * (sizes.gradient / kFp32);
  if (framework.keeps_scores) sizes.score = sizes.activation;
  return sizes;
}

}  // namespace reckon
