#pragma once
#include <rapidcheck.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/plans.h"

// Random but valid plans: any strategy on a few nodes, with hardware, links, storage and input of
// any size within what is sold. For properties that hold whatever the plan.
namespace reckon::test {

inline int any_between(int low, int high) { return *rc::gen::inRange(low, high + 1); }
inline bool any_one_in(int n) { return any_between(1, n) == 1; }
/// Log-uniform, so that every order of magnitude is as likely.
inline double any_size(double low, double high) {
  const double way = any_between(0, 1000) / 1000.0;
  return low * std::pow(high / low, way);
}

inline ModelGraph any_model() {
  std::vector<std::int64_t> hidden;
  for (int i = any_between(1, 4); i > 0; --i) hidden.push_back(any_between(1, 64) * 64);
  return make_mlp("any_mlp", any_between(8, 2048), hidden, any_between(2, 1000)).value();
}

inline LinkClass any_link(const std::string& name) {
  LinkClass l;
  l.name = name;
  l.efficiency = Fact<double>{any_between(40, 100) / 100.0};
  l.latency = Fact<Seconds>{Seconds{any_size(1e-6, 1e-4)}};
  return l;
}

inline void any_hardware(PlannedPool& p) {
  p.machine.vcpus = any_between(2, 192);
  p.machine.network = Fact<BytesPerSecond>{BytesPerSecond{any_size(1e8, 4e11)}};
  p.peer_link = any_link("nvlink");
  p.network_link = any_link("ethernet");
  p.cpu_memory_bandwidth_per_vcpu = Fact<BytesPerSecond>{BytesPerSecond{any_size(1e9, 5e9)}};
  if (!p.accelerator) return;
  p.accelerator->memory_bandwidth = Fact<BytesPerSecond>{BytesPerSecond{any_size(1e11, 5e12)}};
  p.accelerator->peer_bandwidth = Fact<BytesPerSecond>{BytesPerSecond{any_size(1e9, 9e11)}};
  p.accelerator->host_bandwidth = Fact<BytesPerSecond>{BytesPerSecond{any_size(1e9, 6e10)}};
  p.efficiency.launch = Fact<Seconds>{Seconds{any_between(0, 10) * 1e-6}};
  p.efficiency.half_size = Fact<Flops>{Flops{any_size(1e6, 1e9)}};
}

/// Storage that reads and writes at a rate of its own, samples that must be read and decoded,
/// checkpoints at an interval or at the optimal one.
inline void any_input(PlannedWorkload& job) {
  job.dataset.bytes_per_sample = Fact<Bytes>{Bytes{any_size(100, 1e6)}};
  if (any_one_in(2)) job.dataset.decode_cpu_seconds = Fact<double>{any_size(1e-6, 1e-2)};
  job.checkpoint.storage.read_per_node = Fact<BytesPerSecond>{BytesPerSecond{any_size(1e7, 1e10)}};
  job.checkpoint.storage.write_per_node = Fact<BytesPerSecond>{BytesPerSecond{any_size(1e7, 1e10)}};
  job.checkpoint.storage.latency = Fact<Seconds>{Seconds{any_size(1e-3, 0.1)}};
  job.checkpoint.mode = CheckpointSpec::Mode::interval;
  job.checkpoint.interval = Seconds{double(any_between(60, 7200))};
  if (any_one_in(3)) job.evaluations = any_between(1, 5);
}

/// Synchronous strategies only: an asynchronous rate is measured on a simulated run and good to a
/// percent.
inline Plan any_plan() {
  constexpr StrategyKind kKinds[] = {StrategyKind::single, StrategyKind::mirrored,
                                     StrategyKind::multi_worker_mirrored,
                                     StrategyKind::parameter_server};
  const StrategyKind kind = kKinds[any_between(0, 3)];
  const bool one_node = kind == StrategyKind::single || kind == StrategyKind::mirrored;
  const int nodes = one_node ? 1 : any_between(1, 4);
  const int per_node = kind == StrategyKind::single ? 1 : any_between(1, 8);
  const int servers = kind == StrategyKind::parameter_server ? any_between(0, 3) : 0;
  Plan plan = make_round_plan(any_model(), kind, nodes, per_node, servers);
  for (PlannedPool& pool : plan.pools) any_hardware(pool);
  PlannedWorkload& job = plan.jobs[0];
  job.strategy.layout.micro_batch = any_between(1, 512);
  job.global_batch = std::int64_t{job.strategy.layout.micro_batch} * job.strategy.accelerators();
  job.steps = any_between(10, 100'000);
  job.total_samples = double(job.steps) * double(job.global_batch);
  if (any_one_in(2)) job.optimizer = Optimizer::adamw;
  any_input(job);
  return plan;
}

/// Every pool with a price of its own, a fee and kept checkpoints; nodes that come late and break.
inline Plan any_priced_plan() {
  Plan plan = any_plan();
  for (PlannedPool& pool : plan.pools) {
    pool.price.machine = HourlyRate{std::int64_t{any_between(1, 100'000)} * 1'000'000};
    pool.price.accelerators = HourlyRate{std::int64_t{any_between(0, 100'000)} * 1'000'000};
    pool.provisioning = Fact<Seconds>{Seconds{double(any_between(1, 600))}};
  }
  plan.billing.management = HourlyRate{std::int64_t{any_between(0, 100)} * 1'000'000};
  plan.storage_per_gb = HourlyRate{std::int64_t{any_between(0, 100)} * 1'000};
  plan.failures = {
      .on = any_one_in(2),
      .mtbf_per_accelerator = Fact<Seconds>{Seconds{double(any_between(10, 500)) * 3600}},
      .repair = Fact<Seconds>{Seconds{double(any_between(1, 1800))}}};
  return plan;
}

}  // namespace reckon::test
