#include "sim/step/step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/check.h"
#include "sim/step/assumptions.h"
#include "sim/step/compute.h"
#include "sim/step/input.h"
#include "sim/step/network/collective_cost.h"
#include "sim/step/network/collectives_cpu.h"
#include "sim/step/overlap.h"
#include "sim/step/parameter_server.h"
#include "sim/step/step_model.h"

namespace reckon {
namespace {

/// What every strategy begins with.
struct Workers {
  int live = 1;
  int accelerators = 1;  // of all live workers
  int per_worker = 1;
  double accumulation = 1;            // batches that one accelerator runs before an update
  double samples = 0;                 // of one accelerator in one optimizer step
  const PlannedPool* pool = nullptr;  // whose accelerator is the slowest
  ComputeTimes batch;                 // of one batch of one accelerator
};

Workers workers_of(const Plan& plan, const PlannedWorkload& job, int live_workers) {
  const PlannedStrategy& s = job.strategy;
  Workers w;
  w.live = live_workers > 0 ? std::min(live_workers, s.workers) : s.workers;
  w.per_worker = std::max(1, s.accelerators_per_worker);
  w.accelerators = w.live * w.per_worker;
  const double at_once = double(job.batch_per_accelerator) * s.accelerators();
  w.accumulation = std::max(1.0, std::floor(double(job.global_batch) / at_once));
  w.samples = w.accumulation * job.batch_per_accelerator;
  for (const auto* pool : computing_pools(plan)) {
    auto times = compute_times(job, processor_of(*pool, job.precision), job.batch_per_accelerator);
    if (w.pool && times.total() <= w.batch.total()) continue;
    w.pool = pool;
    w.batch = std::move(times);
  }
  return w;
}

bool runs_in_step(const PlannedStrategy& s) {
  return s.kind != StrategyKind::parameter_server || s.synchronous;
}

/// Reductions of all buckets: each with the fastest algorithm for its size, or the one that the
/// plan demands.
void reduce_gradients(StepEstimate& e, const Plan& plan, const PlannedWorkload& job,
                      const Workers& w, const CollectiveCost& cost) {
  const PlannedStrategy& s = job.strategy;
  const bool tpu = s.kind == StrategyKind::tpu;
  // XLA on TPU sums all gradients after the backward pass [Kumar et al. 2019, Sec. 2.2].
  const auto buckets = gradient_buckets(job, w.batch, !tpu);
  const Fabric fabric =
      s.kind == StrategyKind::mirrored ? fabric_of_worker(*w.pool, s) : fabric_of(plan, s, w.live);
  std::vector<Seconds> durations;
  std::map<std::string_view, Bytes> reduced_by;
  Bytes sent{};
  for (const Bucket& bucket : buckets) {
    const auto choice = all_reduce_of_workers(plan, s, fabric, bucket.size, cost);
    durations.push_back(choice.time);
    sent += choice.sent_by_rank;
    reduced_by[choice.algorithm] += bucket.size;
  }
  const auto result = overlap(buckets, durations, w.batch.backward);
  e.communication = result.communication;
  e.exposed.gradients = result.exposed;
  if (w.pool->accelerator)
    e.exposed.contention =
        contention({result.communication - result.exposed, sent,
                    std::max(fabric.peer, w.pool->accelerator->host_bandwidth.value)},
                   1 - w.batch.bound_by_memory / (w.batch.forward + w.batch.backward),
                   plan.framework.overlap_slowdown.value);
  e.sent_per_worker = sent * double(w.per_worker);
  const auto most =
      std::max_element(reduced_by.begin(), reduced_by.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != reduced_by.end() && fabric.ranks() > 1 && !fabric.on_torus)
    e.all_reduce = most->first;
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

ParameterServerSetup slowed(ParameterServerSetup setup, double factor) {
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
  return setup.of_busiest_server() * remote;
}

/// Do the workers wait for the servers' NICs rather than for their own?
bool servers_are_busier(const ParameterServerSetup& setup) {
  Bytes to_busiest_node{};
  for (const auto& c : setup.classes) {
    if (!c.local)
      to_busiest_node = std::max(to_busiest_node, double(c.per_node) * setup.variables());
  }
  return traffic_of_busiest_server(setup) > to_busiest_node;
}

/// Fills in the step's time without the input pipeline. True: the servers are what the workers wait
/// for.
bool synchronous_servers(StepEstimate& e, const Plan& plan, const PlannedWorkload& job,
                         const Workers& w, const NetworkModel& network,
                         const CollectiveCost& cost) {
  const PlannedStrategy& s = job.strategy;
  const auto times = repeated(w.batch, w.accumulation);
  auto setup = server_setup(plan, job, times, w.live, step_assumptions::kParameterServerGroups);
  add_local_reduction(setup, *w.pool, s, cost);
  const double factor =
      straggler_factor(w.live, s.backup_workers, plan.framework.step_jitter.value);
  e.step = makespan(synchronous_step(slowed(setup, factor)), network);
  e.update = setup.update;
  e.exposed.servers = e.exposed_communication = std::max(Seconds{}, e.step - e.compute - e.update);
  auto silent = slowed(setup, 0);
  silent.update = Seconds{};
  e.communication = makespan(synchronous_step(silent), network);
  e.push = makespan(one_way(silent, OneWay::push), network);
  e.pull = makespan(one_way(silent, OneWay::pull), network);
  e.sent_per_worker = setup.variables();
  e.server_utilization = traffic_of_busiest_server(setup) / setup.server_nic / e.step;
  return servers_are_busier(setup);
}

/// The optimizer step of asynchronous training is the mean time in which the workers process one
/// global batch.
bool asynchronous_servers(StepEstimate& e, const Plan& plan, const PlannedWorkload& job,
                          const Workers& w, const NetworkModel& network,
                          const CollectiveCost& cost) {
  const PlannedStrategy& s = job.strategy;
  const auto times = repeated(w.batch, w.accumulation);
  auto setup =
      server_setup(plan, job, times, w.live, step_assumptions::asynchronous_groups(w.live));
  add_local_reduction(setup, *w.pool, s, cost);
  const double jitter = plan.framework.step_jitter.value;
  const double rate =
      asynchronous_rate(setup, s.staleness, jitter, network);  // worker steps a second
  const double worker_steps = double(job.global_batch) / (w.samples * w.per_worker);
  e.step = Seconds{worker_steps / rate};
  // Seen from one worker: its own step lasts live / rate.
  const Seconds of_worker{w.live / rate};
  e.update = setup.update;
  e.exposed.servers = e.exposed_communication = std::max(Seconds{}, of_worker - e.compute);
  ParameterServerSetup alone = slowed(setup, 0);
  alone.update = Seconds{};
  e.communication = makespan(synchronous_step(alone), network);
  e.sent_per_worker = setup.variables();
  e.server_utilization = traffic_of_busiest_server(setup) / setup.server_nic / of_worker;
  return servers_are_busier(setup);
}

Bottleneck bottleneck_of(const StepEstimate& e, bool servers_busier, const ComputeTimes& times) {
  if (e.exposed_input.count() > 0) return Bottleneck::input;
  if (e.exposed_communication > e.compute)
    return servers_busier ? Bottleneck::parameter_server : Bottleneck::communication;
  if (times.waiting_for_host * 2 > times.total()) return Bottleneck::host;
  return times.bound_by_memory * 2 > times.total() ? Bottleneck::memory : Bottleneck::compute;
}

}  // namespace

std::string_view to_text(Bottleneck b) {
  switch (b) {
    case Bottleneck::compute:
      return "compute";
    case Bottleneck::communication:
      return "communication";
    case Bottleneck::input:
      return "input";
    case Bottleneck::parameter_server:
      return "parameter_server";
    case Bottleneck::memory:
      return "memory";
    case Bottleneck::host:
      return "host";
  }
  return "";
}

namespace {

/// What the slowest worker's loop does in a step outside layers, exchange and update.
Seconds host_time(const Plan& plan) {
  Seconds host{};
  for (const auto* pool : computing_pools(plan)) host = std::max(host, pool->host_step.value);
  return host;
}

/// Several workers on CPUs that go in step end it with one small all-reduce: the loss of all
/// samples, whether to stop and whether to save (Session::agree of our worker: three doubles).
void agree_on_going_on(StepEstimate& e, const Plan& plan, const PlannedStrategy& s, int live,
                       const CollectiveCost& cost) {
  constexpr Bytes kAgreement{24};
  if (live == 1 || !runs_in_step(s) || computing_pools(plan).front()->accelerator) return;
  const Seconds time =
      all_reduce_of_workers(plan, s, fabric_of(plan, s, live), kAgreement, cost).time;
  e.communication += time;
  e.exposed.gradients += time;
  e.exposed_communication += time;
  e.step += time;
}

void wait_for_input(StepEstimate& e) {
  e.exposed_input = std::max(Seconds{}, e.input - e.step);
  e.step += e.exposed_input;
}

/// Who answered, of whom anything was asked.
void name_engine(StepEstimate& e, std::string_view name) {
  if (e.communication.count() > 0) e.engine = name;
}

/// ZeRO, tensor, pipeline, context and expert parallelism.
StepEstimate cut_model_step(const Plan& plan, const PlannedWorkload& job, const StepModel& model,
                            const NetworkModel& network) {
  const Layout layout = layout_of(job);
  const bool by_formula = network.by_formula() != ByFormula::none;
  StepEstimate e =
      by_formula ? model.estimate(layout) : model.estimate(layout, SimulatedCollectives(network));
  name_engine(e, by_formula ? kClosedForms : network.name());
  e.layers = model.layer_times(layout);
  const double samples = double(layout.global_batch()) / double(layout.accelerators());
  for (const auto* pool : computing_pools(plan))
    e.input = std::max(e.input, input_times(*pool, job, samples).slowest());
  const Seconds alone = e.step;
  e.host = host_time(plan);
  e.step += e.host;
  wait_for_input(e);
  if (e.exposed_input.count() > 0) e.bottleneck = Bottleneck::input;
  const double slowed = alone / e.step;
  e.samples_per_second = e.samples_per_second * slowed;
  e.mfu = computing_pools(plan).front()->accelerator ? e.mfu * slowed : 0;
  return e;
}

/// Median over the step model's time, by what comparable runs took; 0 in the plan: nothing is
/// known.
double residual_factor(const Plan& plan) {
  const PlannedPool* workers = plan.pool_with(Role::worker);
  const double factor = workers ? workers->efficiency.step_spread.value : 1;
  return factor > 0 ? factor : 1;
}

/// All that devices and links take, longer by the factor; what the input needs is its own.
StepEstimate slowed(StepEstimate e, double factor) {
  if (factor == 1) return e;
  for (Seconds* time : {&e.step, &e.compute, &e.communication, &e.exposed_communication, &e.push,
                        &e.pull, &e.exposed_input, &e.bubble, &e.forward, &e.update, &e.host})
    *time *= factor;
  ExposedCommunication& x = e.exposed;
  for (Seconds* time : {&x.gradients, &x.parameters, &x.tensor, &x.context, &x.expert, &x.pipeline,
                        &x.servers, &x.stragglers, &x.contention})
    *time *= factor;
  for (LayerTime& layer : e.layers) {
    layer.forward *= factor;
    layer.backward *= factor;
  }
  e.samples_per_second = e.samples_per_second / factor;
  e.mfu /= factor;
  return e;
}

}  // namespace

StepEstimate estimate_step(const Plan& plan, const PlannedWorkload& job,
                           const NetworkModel& network, int live_workers) {
  const PlannedStrategy& s = job.strategy;
  if (cuts_the_model(s.kind))
    return slowed(cut_model_step(plan, job, StepModel(job.model, step_setting(plan, job)), network),
                  residual_factor(plan));
  const Workers w = workers_of(plan, job, live_workers);
  const std::unique_ptr<CollectiveCost> of_collectives = cost_of_collectives(network);
  const CollectiveCost& cost = *of_collectives;
  StepEstimate e;
  e.layers = w.batch.layers;
  e.compute = w.batch.total() * w.accumulation;
  e.forward = w.batch.forward;
  bool servers_busier = false;
  if (s.kind == StrategyKind::parameter_server) {
    servers_busier = s.synchronous ? synchronous_servers(e, plan, job, w, network, cost)
                                   : asynchronous_servers(e, plan, job, w, network, cost);
  } else {
    e.update = w.batch.update;
    if (s.kind != StrategyKind::single) reduce_gradients(e, plan, job, w, cost);
    if (s.kind == StrategyKind::multi_worker_mirrored) {
      // The collective waits for the slowest process.
      const double factor = straggler_factor(w.live, 0, plan.framework.step_jitter.value);
      e.exposed.stragglers = (factor - 1) * e.compute;
    }
    e.exposed_communication = e.exposed.total();
    e.step = e.compute + e.exposed_communication + e.update;
  }

  // A synchronous step takes `samples` from every input pipeline; an asynchronous one its share of
  // them.
  for (const auto* pool : computing_pools(plan))
    e.input = std::max(e.input, input_times(*pool, job, w.samples).slowest());
  e.host = host_time(plan);
  agree_on_going_on(e, plan, s, w.live, cost);
  name_engine(e, network.name());
  double used = double(w.accelerators) * w.samples;
  if (!runs_in_step(s)) {
    e.input *= double(job.global_batch) / used;
    e.host *= double(job.global_batch) / used;
    used = double(job.global_batch);
  } else if (s.kind == StrategyKind::parameter_server && s.backup_workers > 0) {
    // Gradients of the slowest workers are dropped [Chen et al. 2016].
    used *= double(std::max(1, w.live - s.backup_workers)) / w.live;
  }
  e.step += e.host;
  wait_for_input(e);
  e.samples_per_second = Samples{used} / e.step;

  if (w.pool->accelerator) {
    const FlopsPerSecond peak = processor_of(*w.pool, job.precision).peak;
    e.mfu = job.model.model_flops().v * e.samples_per_second.v / (peak.v * w.accelerators);
  }
  e.bottleneck = bottleneck_of(e, servers_busier, w.batch);
  return slowed(std::move(e), residual_factor(plan));
}

StepEstimate estimate_step(const Plan& plan, const PlannedWorkload& job, const ModelFold& fold,
                           const NetworkModel& network) {
  RECKON_CHECK(cuts_the_model(job.strategy.kind));
  const StepModel model(fold, step_setting(plan, job));
  return slowed(cut_model_step(plan, job, model, network), residual_factor(plan));
}

Seconds evaluation_time(const Plan& plan, const PlannedWorkload& job, const StepEstimate& step) {
  Seconds forward = step.forward;
  const double replica = double(job.strategy.replica());
  const double batch = job.batch_per_accelerator / replica;  // of one accelerator
  for (const auto* pool : computing_pools(plan))
    forward = std::max(forward, input_times(*pool, job, batch).slowest());
  const double at_once = batch * job.strategy.accelerators();
  return std::ceil(job.dataset.validation_samples.value.v / at_once) * forward;
}

}  // namespace reckon
