#include "sim/step/servers/step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/step/assumptions.h"
#include "sim/step/compute.h"
#include "sim/step/network/collective_cost.h"
#include "sim/step/servers/parameter_server.h"

namespace reckon {
namespace {

struct ServedWorkers {
  int live = 1;
  int accelerators = 1;  // of all live workers
  int per_worker = 1;
  double accumulation = 1;            // batches that one accelerator runs before an update
  double samples = 0;                 // of one accelerator in one optimizer step
  const PlannedPool* pool = nullptr;  // whose accelerator is the slowest
  ComputeTimes batch;                 // of one batch of one accelerator
};

ServedWorkers served_workers(const Plan& plan, const PlannedWorkload& job, int live_workers) {
  const PlannedStrategy& s = job.strategy;
  ServedWorkers w;
  w.live = live_workers > 0 ? std::min(live_workers, s.workers) : s.workers;
  w.per_worker = std::max(1, s.accelerators_per_worker);
  w.accelerators = w.live * w.per_worker;
  w.samples = samples_of_worker(job) / w.per_worker;
  w.accumulation = w.samples / job.strategy.layout.micro_batch;
  for (const auto* pool : computing_pools(plan)) {
    auto times =
        compute_times(job, processor_of(*pool, job.precision), job.strategy.layout.micro_batch);
    if (w.pool && times.total() <= w.batch.total()) continue;
    w.pool = pool;
    w.batch = std::move(times);
  }
  return w;
}

/// A worker with several accelerators adds their gradients up before it pushes, and hands out what
/// it pulled.
void add_local_reduction(ParameterServerSetup& setup, const PlannedPool& pool,
                         const PlannedStrategy& s, const CollectiveCost& cost) {
  const Fabric inside = fabric_of_worker(pool, s);
  if (inside.ranks_per_node <= 1) return;
  for (auto& group : setup.groups)
    group.backward += cost.all_reduce(inside, group.size, AllReduceKind::ring).time;
}

ComputeTimes repeated(ComputeTimes t, double accumulation) {
  for (auto& layer : t.layers) {
    layer.forward *= accumulation;
    layer.backward *= accumulation;
  }
  t.forward *= accumulation;
  t.backward *= accumulation;
  t.bound_by_memory *= accumulation;
  return t;
}

ParameterServerSetup slowed_servers(ParameterServerSetup setup, double factor) {
  for (auto& group : setup.groups) {
    group.forward *= factor;
    group.backward *= factor;
  }
  return setup;
}

/// One way through the NIC of the server that has most of it.
Bytes traffic_of_busiest_server(const ParameterServerSetup& setup) {
  double remote = 0;
  for (const auto& c : setup.classes) {
    if (c.local) continue;
    // Of workers beside servers those of a server's own node reach it without the NIC.
    remote += c.with_servers ? double(c.count - c.per_node) : double(c.count);
  }
  return setup.to_busiest_server() * remote;
}

/// Do the workers wait for the servers' NICs rather than for their own?
bool servers_are_busier(const ParameterServerSetup& setup) {
  Bytes to_busiest_node{};
  for (const auto& c : setup.classes) {
    if (!c.local) to_busiest_node = std::max(to_busiest_node, double(c.per_node) * setup.sent());
  }
  return traffic_of_busiest_server(setup) > to_busiest_node;
}

/// Fills in the step's time without the input pipeline. True: the servers are what the workers wait
/// for.
bool synchronous_servers(StepEstimate& e, const Plan& plan, const PlannedWorkload& job,
                         const ServedWorkers& w, const NetworkModel& network,
                         const CollectiveCost& cost) {
  const PlannedStrategy& s = job.strategy;
  const auto times = repeated(w.batch, w.accumulation);
  auto setup = server_setup(plan, job, times, w.live, step_assumptions::kParameterServerGroups);
  add_local_reduction(setup, *w.pool, s, cost);
  const double factor =
      straggler_factor(w.live, s.backup_workers(), plan.framework.step_jitter.value);
  e.step = makespan(synchronous_step(slowed_servers(setup, factor)), network);
  // An update hides behind compute where it is of variables whose gradients are there early.
  const Seconds waits = std::max(Seconds{}, e.step - e.compute);
  e.update = std::min(setup.update, waits);
  e.exposed.servers = e.exposed_communication = waits - e.update;
  auto silent = slowed_servers(setup, 0);
  silent.update = Seconds{};
  e.communication = makespan(synchronous_step(silent), network);
  e.push = makespan(one_way(silent, OneWay::push), network);
  e.pull = makespan(one_way(silent, OneWay::pull), network);
  e.sent_per_worker = setup.sent();
  e.server_utilization = traffic_of_busiest_server(setup) / setup.server_nic / e.step;
  return servers_are_busier(setup);
}

/// The optimizer step of asynchronous training is the mean time in which the workers process one
/// global batch.
bool asynchronous_servers(StepEstimate& e, const Plan& plan, const PlannedWorkload& job,
                          const ServedWorkers& w, const NetworkModel& network,
                          const CollectiveCost& cost) {
  const PlannedStrategy& s = job.strategy;
  const auto times = repeated(w.batch, w.accumulation);
  auto setup =
      server_setup(plan, job, times, w.live, step_assumptions::asynchronous_groups(w.live));
  add_local_reduction(setup, *w.pool, s, cost);
  const double jitter = plan.framework.step_jitter.value;
  const AsynchronousPace pace = asynchronous_pace(setup, s.servers->staleness, jitter, network);
  e.delay = pace.delay;
  // Seen from one worker. Some steps' jitter may add up to less than nothing.
  const Seconds of_worker = std::max(e.compute, Seconds{w.live / pace.rate});
  e.step = of_worker * (double(job.global_batch) / (w.samples * w.accelerators));
  e.exposed.servers = e.exposed_communication = of_worker - e.compute;
  ParameterServerSetup alone = slowed_servers(setup, 0);
  alone.update = Seconds{};
  e.communication = makespan(synchronous_step(alone), network);
  e.sent_per_worker = setup.sent();
  e.server_utilization = traffic_of_busiest_server(setup) / setup.server_nic / of_worker;
  return servers_are_busier(setup);
}

Bottleneck served_bottleneck_of(const StepEstimate& e, bool servers_busier,
                                const ComputeTimes& times) {
  if (e.exposed_communication > e.compute)
    return servers_busier ? Bottleneck::parameter_server : Bottleneck::communication;
  if (times.waiting_for_host * 2 > times.total()) return Bottleneck::host;
  return times.bound_by_memory * 2 > times.total() ? Bottleneck::memory : Bottleneck::compute;
}

}  // namespace

BareStep server_step(const Plan& plan, const PlannedWorkload& job, const NetworkModel& network,
                     int live_workers) {
  const PlannedStrategy& s = job.strategy;
  const ServedWorkers w = served_workers(plan, job, live_workers);
  const std::unique_ptr<CollectiveCost> cost = cost_of_collectives(network);
  BareStep bare;
  StepEstimate& e = bare.estimate;
  e.layers = w.batch.layers;
  e.compute = w.batch.total() * w.accumulation;
  e.forward = w.batch.forward;
  const bool servers_busier = s.synchronous()
                                  ? synchronous_servers(e, plan, job, w, network, *cost)
                                  : asynchronous_servers(e, plan, job, w, network, *cost);
  e.bottleneck = served_bottleneck_of(e, servers_busier, w.batch);
  if (e.communication.count() > 0) e.engine = network.name();
  bare.accelerators = w.accelerators;
  bare.samples_each = w.samples;
  bare.samples = double(w.accelerators) * w.samples;
  if (!s.synchronous()) {
    bare.rounds = double(job.global_batch) / bare.samples;
    bare.samples = double(job.global_batch);
  } else if (s.backup_workers() > 0) {
    // Gradients of the slowest workers are dropped [Chen et al. 2016].
    bare.samples *= double(std::max(1, w.live - s.backup_workers())) / w.live;
  }
  if (w.pool->accelerator) bare.peak = processor_of(*w.pool, job.precision).peak;
  return bare;
}

}  // namespace reckon
