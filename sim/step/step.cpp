#include "sim/step/step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/step/input.h"
#include "sim/step/network/collective_cost.h"
#include "sim/step/network/collectives_cpu.h"
#include "sim/step/servers/step.h"
#include "sim/step/step_model.h"

namespace reckon {

namespace {

bool is_served(const PlannedStrategy& s) { return s.servers.has_value(); }

/// With so many workers of those that the plan has; 0: all.
Layout live_layout(const PlannedWorkload& job, int live_workers) {
  Layout l = layout_of(job);
  const PlannedStrategy& s = job.strategy;
  if (live_workers <= 0 || live_workers >= s.workers) return l;
  const std::int64_t live = std::int64_t{live_workers} * std::max(1, s.accelerators_per_worker);
  l.data = static_cast<int>(std::max<std::int64_t>(1, live / s.layout.replica()));
  return l;
}

/// A pipeline each stage of which has its own pools; layers: as they were.
void take_mixed_step(BareStep& bare, const Plan& plan, const PlannedWorkload& job,
                     const ModelFold& fold, const CollectiveCost& cost, const Layout& layout) {
  std::map<std::size_t, StepModel> models;
  StageModels stages;
  for (const auto& pools : job.stage_pools) {
    auto& of = stages.emplace_back();
    for (const std::size_t pool : pools)
      of.push_back(
          &models.try_emplace(pool, fold, step_setting(plan, job, plan.pools[pool])).first->second);
  }
  std::vector<LayerTime> layers = std::move(bare.estimate.layers);
  bare.estimate = StepModel::estimate_mixed(stages, layout, cost);
  bare.estimate.layers = std::move(layers);
  bare.peak = StepModel::mean_peak(stages);
}

/// Of pools with different accelerators the slowest sets the pace, but where a pipeline has its own
/// for each stage.
BareStep layout_step(const Plan& plan, const PlannedWorkload& job, const ModelFold& fold,
                     const CollectiveCost& cost, int live_workers) {
  const Layout layout = live_layout(job, live_workers);
  BareStep bare;
  StepEstimate& e = bare.estimate;
  bare.accelerators = layout.accelerators();
  bare.samples = double(layout.global_batch());
  bare.samples_each = bare.samples / double(bare.accelerators);
  const PlannedPool* slowest = nullptr;
  for (const PlannedPool* pool : computing_pools(plan)) {
    const StepModel model(fold, step_setting(plan, job, *pool));
    StepEstimate of_pool = model.estimate(layout, cost);
    if (slowest && of_pool.compute <= e.compute) continue;
    slowest = pool;
    e = std::move(of_pool);
    e.layers = model.layer_times(layout);
    bare.peak = model.setting().on_cpus() ? FlopsPerSecond{} : model.setting().processor.peak;
  }
  if (!job.stage_pools.empty()) take_mixed_step(bare, plan, job, fold, cost, layout);
  if (e.waiting_for_host.count() > 0) {  // as much of every layer
    const double longer = e.compute / (e.compute - e.waiting_for_host);
    for (LayerTime& t : e.layers) {
      t.forward *= longer;
      t.backward *= longer;
    }
  }
  if (!slowest->slice) {
    const Fabric nodes = fabric_of(plan, job.strategy, job.strategy.workers);
    const auto on_node = std::min<std::int64_t>(bare.accelerators, nodes.ranks_per_node);
    e.sent_per_worker =
        e.sent_per_worker * (std::max(1, job.strategy.accelerators_per_worker) / double(on_node));
  }
  if (e.communication.count() > 0) e.engine = cost.engine();
  return bare;
}

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
  const GradientSum sum = gradient_sum(plan, s);
  if (live == 1 || !s.synchronous() || !sum.on_cpus) return;
  const Seconds time = sum(fabric_of(plan, s, live), kAgreement, cost).time;
  e.communication += time;
  e.exposed.gradients += time;
  e.exposed_communication += time;
  e.step += time;
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
  for (Seconds* time :
       {&e.step, &e.compute, &e.communication, &e.exposed_communication, &e.push, &e.pull,
        &e.exposed_input, &e.bubble, &e.forward, &e.update, &e.host, &e.waiting_for_host})
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

/// Adds what every job has, whatever its strategy.
StepEstimate whole_step(BareStep bare, const Plan& plan, const PlannedWorkload& job,
                        const NetworkModel& network, int live_workers) {
  StepEstimate& e = bare.estimate;
  const PlannedStrategy& s = job.strategy;
  const int live = live_workers > 0 ? std::min(live_workers, s.workers) : s.workers;
  agree_on_going_on(e, plan, s, live, *cost_of_collectives(network));
  // A synchronous step takes its samples from every input pipeline; an asynchronous one its share
  // of them.
  Seconds decode{};  // by the processors that compute
  for (const auto* pool : computing_pools(plan)) {
    const InputTimes input = input_times(*pool, job, bare.samples_each);
    e.input = std::max(e.input, input.slowest());
    if (!pool->accelerator) decode = std::max(decode, input.processors);
  }
  e.input *= bare.rounds;
  decode *= bare.rounds;
  e.host = host_time(plan) * bare.rounds;
  e.step += e.host;
  const Seconds busy = e.compute + e.update;
  e.exposed_input = std::max({Seconds{}, e.input - e.step, busy + decode - e.step});
  e.step += e.exposed_input;
  if (e.exposed_input.count() > 0) e.bottleneck = Bottleneck::input;
  e.samples_per_second = Samples{bare.samples} / e.step;
  e.mfu = bare.peak.v > 0 ? job.model.model_flops().v * e.samples_per_second.v /
                                (bare.peak.v * double(bare.accelerators))
                          : 0;
  return slowed(std::move(e), residual_factor(plan));
}

}  // namespace

StepEstimate estimate_step(const Plan& plan, const PlannedWorkload& job,
                           const NetworkModel& network, int live_workers) {
  if (!is_served(job.strategy))
    return estimate_step(plan, job, ModelFold(job.model, job.stage_blocks), network, live_workers);
  return whole_step(server_step(plan, job, network, live_workers), plan, job, network,
                    live_workers);
}

StepEstimate estimate_step(const Plan& plan, const PlannedWorkload& job, const ModelFold& fold,
                           const NetworkModel& network, int live_workers) {
  RECKON_CHECK(!is_served(job.strategy));
  const auto cost = cost_in_layouts(network);
  return whole_step(layout_step(plan, job, fold, *cost, live_workers), plan, job, network,
                    live_workers);
}

Seconds evaluation_time(const Plan& plan, const PlannedWorkload& job, const StepEstimate& step) {
  Seconds forward = step.forward;
  const double replica = double(job.strategy.layout.replica());
  const double batch = job.strategy.layout.micro_batch / replica;  // of one accelerator
  for (const auto* pool : computing_pools(plan))
    forward = std::max(forward, input_times(*pool, job, batch).slowest());
  const double at_once = batch * job.strategy.accelerators();
  return std::ceil(job.dataset.validation_samples.value.v / at_once) * forward;
}

}  // namespace reckon
