#pragma once
#include "sim/model/zoo/zoo.h"
#include "sim/step/step_model.h"
#include "support/plans.h"

// What the tests of the step model share.
namespace reckon::test {

/// Eight accelerators a node, half of every peak, whatever the size of a kernel.
inline StepSetting setting() {
  PlannedPool pool = round_pool("workers", Role::worker, 64, 8, Precision::bf16);
  pool.accelerator->memory = Fact<Bytes>{80.0_GiB};
  StepSetting s;
  s.processor = processor_of(pool, Precision::bf16);
  s.memory = 80.0_GiB;
  s.fabric = {.nodes = 64,
              .ranks_per_node = 8,
              .peer = 200.0_GBps,
              .nic = 100.0_GBps,
              .peer_latency = Seconds{5e-6},
              .nic_latency = Seconds{1e-5}};
  s.framework.reserve = Fact<Bytes>{0.75_GB};
  s.framework.step_jitter = Fact<double>{0.03};
  s.framework.expert_imbalance = Fact<double>{0.1};
  s.host_link = 10.0_GBps;
  s.host_memory = 20.0_GBps;
  return s;
}

/// The same with a host that needs so long for each kernel.
inline StepSetting with_host(Seconds host) {
  StepSetting s = setting();
  s.processor.efficiency.host = Fact<Seconds>{host};
  return s;
}

inline const StepModel& step_model_gpt() {
  static const StepModel model(zoo_model("gpt3_13b").value(), setting());
  return model;
}

}  // namespace reckon::test
