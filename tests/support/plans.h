#pragma once
#include <string>
#include <utility>

#include "sim/model/zoo/zoo.h"
#include "sim/scenario/plan.h"

// Small Plans made by hand, with round numbers, so that a test can derive its expectation in a
// comment without a catalog or a scenario file. Change what a test is about: Plan is a plain value.
namespace reckon::test {

/// 10 TFLOP/s in fp32, 40 in the 16-bit types, 1 TB/s of memory bandwidth, 16 GiB, links of 20 GB/s
/// one direction between the accelerators of a node, 10 GB/s to the host.
inline Accelerator round_accelerator() {
  Accelerator a;
  a.name = "Round-16";
  a.vendor = "test";
  a.architecture = "Round";
  a.year = 2020;
  a.peak[std::size_t(Precision::fp32)] = Fact<FlopsPerSecond>{10.0_TFLOPS};
  a.peak[std::size_t(Precision::fp16)] = Fact<FlopsPerSecond>{40.0_TFLOPS};
  a.peak[std::size_t(Precision::bf16)] = Fact<FlopsPerSecond>{40.0_TFLOPS};
  a.memory = Fact<Bytes>{16.0_GiB};
  a.memory_bandwidth = Fact<BytesPerSecond>{1000.0_GBps};
  a.peer_bandwidth = Fact<BytesPerSecond>{20.0_GBps};
  a.host_bandwidth = Fact<BytesPerSecond>{10.0_GBps};
  a.power_watts = 250;
  return a;
}

/// 16 vCPUs, 64 GB, a 10 Gbit/s NIC.
inline Machine round_machine() {
  Machine m;
  m.name = "round-16";
  m.vcpus = 16;
  m.memory = Fact<Bytes>{64.0_GB};
  m.network = Fact<BytesPerSecond>{10.0_Gbps};
  return m;
}

/// Half of every peak, whatever the size of a kernel; no launch time.
inline Efficiency round_efficiency(Precision precision = Precision::fp32) {
  Efficiency e;
  e.accelerator = "Round-16";
  e.precision = precision;
  e.convolution = e.matmul = e.attention = e.memory = Fact<double>{0.5};
  e.step_spread = Fact<double>{1.0};
  return e;
}

/// The whole printed bandwidth, no latency.
inline LinkClass perfect_link(std::string name) {
  LinkClass l;
  l.name = std::move(name);
  l.efficiency = Fact<double>{1.0};
  return l;
}

/// 100 MB/s in both directions, no latency.
inline Storage round_storage() {
  Storage s;
  s.name = "round-storage";
  s.read_per_node = Fact<BytesPerSecond>{BytesPerSecond{1e8}};
  s.write_per_node = Fact<BytesPerSecond>{BytesPerSecond{1e8}};
  return s;
}

/// 1,000,000 samples that take no time to read or decode; 10,000 to validate on.
inline Dataset free_dataset(SampleUnit unit = SampleUnit::record) {
  Dataset d;
  d.name = "free";
  d.samples = Fact<Samples>{Samples{1e6}};
  d.validation_samples = Fact<Samples>{Samples{1e4}};
  d.unit = unit;
  return d;
}

/// `nodes` nodes of `accelerators_per_node` round accelerators; 3.60 USD/h a node, ready 100 s
/// after the request.
inline PlannedPool round_pool(std::string name, Role role, int nodes, int accelerators_per_node,
                              Precision precision = Precision::fp32) {
  PlannedPool p;
  p.name = std::move(name);
  p.role = role;
  p.machine = round_machine();
  if (accelerators_per_node > 0) p.accelerator = round_accelerator();
  p.accelerators_per_node = accelerators_per_node;
  p.nodes_initial = p.nodes_min = p.nodes_max = nodes;
  p.price.machine = HourlyRate{1'200'000'000};
  p.price.accelerators = HourlyRate{2'400'000'000};
  p.price.as_of = "2026-01-01";
  p.price.source = "test";
  p.provisioning = Fact<Seconds>{Seconds{100}};
  p.efficiency = round_efficiency(precision);
  p.peer_link = perfect_link("nvlink");
  p.network_link = perfect_link("ethernet");
  p.cpu_flops_per_vcpu = Fact<double>{1e10};
  p.cpu_memory_bandwidth_per_vcpu = Fact<BytesPerSecond>{2.5_GBps};
  return p;
}

/// The Kubernetes cluster-autoscaler's and Job's defaults; billed by the second; start-up takes no
/// time.
inline void set_rules(Plan& plan) {
  using namespace std::chrono_literals;
  plan.autoscaler = {.scan_interval = 10s,
                     .scale_down_unneeded_time = 10min,
                     .scale_down_delay_after_add = 10min,
                     .max_node_provision_time = 15min,
                     .node_group_backoff_initial = 5min,
                     .node_group_backoff_max = 30min,
                     .node_group_backoff_reset = 3h};
  plan.retry = {.backoff_limit = 6, .base = 10s, .cap = 6min, .counts_disruptions = false};
  plan.billing.granularity = 1s;
  plan.billing.minimum = 1min;
  plan.reclaim.law = NoReclaim{};
  plan.framework.reserve = Fact<Bytes>{0.75_GB};
  plan.framework.step_jitter = Fact<double>{0.03};
  plan.framework.expert_imbalance = Fact<double>{0.1};
}

/// One job of `kind` on `nodes` nodes of `accelerators_per_node`, batch 32 an accelerator, 10
/// passes over 1,000,000 samples, no evaluation, no disruption, no checkpoints. parameter_server:
/// one worker an accelerator and `servers` nodes in a second pool.
inline Plan make_round_plan(ModelGraph model, StrategyKind kind, int nodes = 1,
                            int accelerators_per_node = 1, int servers = 0,
                            Precision precision = Precision::fp32) {
  Plan plan;
  plan.name = "round";
  plan.provider = Provider{"gcp"};
  plan.service.id = Service{"gke"};
  plan.region = "round-region";
  plan.zone = "round-region-a";
  plan.pools.push_back(
      round_pool("workers", Role::worker, nodes, accelerators_per_node, precision));
  if (servers > 0) {
    plan.pools.push_back(round_pool("servers", Role::parameter_server, servers, 0, precision));
    plan.pools.back().id = PoolId{1};
  }
  PlannedWorkload job;
  job.name = "job";
  job.dataset = free_dataset(model.sample_unit());
  job.model = std::move(model);
  job.precision = precision;
  job.strategy.layout.micro_batch = 32;
  job.strategy.kind = kind;
  const bool one_each = kind == StrategyKind::parameter_server;
  job.strategy.workers = one_each ? nodes * accelerators_per_node : nodes;
  job.strategy.accelerators_per_worker = one_each ? 1 : accelerators_per_node;
  job.strategy.layout.stops_recomputing = traits_of(kind).stops_recomputing;
  job.strategy.layout.overlap = kind != StrategyKind::tpu;
  if (kind == StrategyKind::parameter_server)
    job.strategy.servers = ParameterServers{.count = servers};
  job.global_batch = std::int64_t{32} * job.strategy.accelerators();
  job.total_samples = 1e7;
  job.steps = (std::int64_t{10'000'000} + job.global_batch - 1) / job.global_batch;
  job.checkpoint.mode = CheckpointSpec::Mode::none;
  job.checkpoint.storage = round_storage();
  plan.jobs.push_back(std::move(job));
  plan.prices_as_of = "2026-01-01";
  set_rules(plan);
  return plan;
}

/// 784 -> 512 -> 512 -> 10: 669,706 parameters.
inline ModelGraph small_mlp() {
  const std::int64_t hidden[] = {512, 512};
  return make_mlp("small_mlp", 784, hidden, 10).value();
}

}  // namespace reckon::test
