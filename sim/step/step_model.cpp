#include "sim/step/step_model.h"

#include <algorithm>
#include <map>
#include <memory>

#include "sim/base/check.h"
#include "sim/step/assumptions.h"
#include "sim/step/offload.h"
#include "sim/step/overlap.h"
#include "sim/step/pipeline_span.h"
#include "sim/step/servers/parameter_server.h"
#include "sim/step/stage_times.h"

namespace reckon {
namespace {

/// The nodes that so many ranks fill.
Fabric fabric_for(const Fabric& full, std::int64_t ranks) {
  Fabric f = full;
  if (f.on_torus) return f;  // a job has the whole slice
  f.ranks_per_node = int(std::min<std::int64_t>(ranks, full.ranks_per_node));
  f.nodes = int((ranks + f.ranks_per_node - 1) / f.ranks_per_node);
  return f;
}

/// Do two stages hold the same parts?
bool same_parts(const Partition& partition, const Layout& l, int a, int b) {
  for (int part = 0; part < l.interleave; ++part) {
    const std::size_t first = std::size_t(part) * std::size_t(l.pipeline);
    if (partition.parts[first + std::size_t(a)] != partition.parts[first + std::size_t(b)])
      return false;
  }
  return true;
}

/// The pipeline as a whole.
struct Stages {
  StageTime slowest;
  Seconds sum{};        // of a micro-batch over all stages
  Seconds reduction{};  // what of any stage's is left when the first stage is done
  Seconds collection{};
  double trainable = 0;             // of the stage that updates most
  Seconds update{};                 // of the stage whose update takes longest
  std::vector<StagePasses> passes;  // of each stage in turn
  Seconds transfer{};               // the longest between two stages
  Seconds drained{};  // since the last stage's last pass, when the first stage ends its own

  void add(const StageTime& t, int interleave) {
    sum += t.whole();
    transfer = std::max(transfer, t.transfer);
    if (t.whole() > slowest.whole()) slowest = t;
    reduction = std::max(reduction, t.reduction - drained);
    collection = std::max(collection, t.collection);
    trainable = std::max(trainable, t.trainable);
    drained += t.backward() / double(interleave);
  }
};

template <class Cost>
Stages all_stages(const StageModel<Cost>& m, std::span<const BlockTime> times,
                  std::span<const BlockState> states) {
  const Layout& l = m.layout;
  const Partition& partition = m.model.partition(l.pipeline * l.interleave);
  Stages all;
  StageTime t;
  for (int stage = 0; stage < l.pipeline; ++stage) {
    // Most stages hold what the one before holds.
    if (stage == 0 || !same_parts(partition, l, stage - 1, stage))
      t = stage_time(m, times, states, stage);
    all.add(t, l.interleave);
    if (m.sends_beside) all.passes.push_back({t.forward(), t.backward()});
  }
  return all;
}

/// What a step takes longer than if its transfers took no time, where stages go on while they send.
Seconds waiting_for_transfers(const Layout& l, const Stages& all) {
  if (l.pipeline == 1) return {};
  return pipeline_span(l, all.passes, all.transfer) - pipeline_span(l, all.passes, Seconds{});
}

/// `backward`: of the slowest stage, one micro-batch.
Seconds update_of(double parameters, const StepSetting& setting, const ElementSizes& size,
                  const Processor& core, const Layout& layout, Seconds backward) {
  if (!layout.offload_optimizer) return update_time(parameters, size, core);
  // The gradients go to the host behind the backward pass, which may be over sooner: of each
  // micro-batch where they are not kept, else of the last one. The host's update and the
  // parameters' way back are waited for [Ren et al. 2021, "ZeRO-Offload", Sec. 4].
  const double times = gradients_leave(layout) ? double(layout.micro_batches) : 1;
  const Seconds down = parameters * size.gradient / setting.host_link - backward;
  return times * std::max(Seconds{}, down) +
         parameters * size.update_traffic() / setting.host_memory +
         parameters * size.weight / setting.host_link;
}

ElementSizes sizes_of(const StepSetting& setting, const ModelFold& fold) {
  return with_stack(
      element_sizes(setting.precision, optimizer_cost(fold.trainable, setting.optimizer),
                    setting.fp32_variables, setting.wide_sums, setting.on_cpus()),
      setting.framework);
}

Bottleneck bottleneck_of(const StepEstimate& e, Seconds bound_by_memory) {
  if (e.exposed_communication > e.compute) return Bottleneck::communication;
  if (e.waiting_for_host * 2 > e.compute) return Bottleneck::host;
  return bound_by_memory * 2 > e.compute ? Bottleneck::memory : Bottleneck::compute;
}

}  // namespace

ModelFold::ModelFold(const ModelGraph& model, std::span<const int> stage_blocks)
    : folded(model),
      limits(model),
      model_flops(model.model_flops()),
      trainable(trainable_shapes(model)) {
  folded.cut_as(stage_blocks);
  for (std::size_t i = 0; i < model.layers().size(); ++i) {
    const LayerCount& c = model.counts()[i];
    if (c.forward.v > 0 || c.elements_out > 0) timed_layers.push_back(model.layers()[i].id);
  }
}

StepModel::StepModel(const ModelGraph& model, StepSetting setting)
    : setting_(std::move(setting)),
      own_(std::in_place, model),
      fold_(*own_),
      size_(sizes_of(setting_, fold_)),
      core_(one_core(setting_.processor)) {
  core_.cores = setting_.processor.cores;  // that share a rank's batch
}

StepModel::StepModel(const ModelFold& fold, StepSetting setting)
    : setting_(std::move(setting)),
      fold_(fold),
      size_(sizes_of(setting_, fold_)),
      core_(one_core(setting_.processor)) {
  core_.cores = setting_.processor.cores;
}

StepEstimate StepModel::estimate(const Layout& layout, const CollectiveCost& cost) const {
  return with_type_of(cost, [&](const auto& of_type) { return estimate_with(layout, of_type); });
}

/// What a model says of one layout: times and states of its blocks, ready for each stage.
template <class Cost>
class StepModel::Pass {
 public:
  Pass(const StepModel& of, const Layout& l, const Cost& cost)
      : of_(of),
        layout_(l),
        cost_(cost),
        job_(fabric_for(of.setting_.fabric, l.accelerators())),
        groups_(job_, l),
        times_(block_times(of.fold_.folded, l, groups_, of.size_, of.core_, imbalance(), cost)),
        states_(block_states(of.fold_.folded, l, of.size_, imbalance())),
        stages_{of.fold_.folded,          l,        groups_, of.size_,
                of.setting_.gradient_sum, of.core_, cost,    of.setting_.on_cpus()} {}
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  Stages all() const {
    Stages all = all_stages(stages_, times_, states_);
    all.update = update(all.trainable, all.slowest);
    return all;
  }
  StageTime stage(int stage) const { return stage_time(stages_, times_, states_, stage); }
  Seconds update(double trainable, const StageTime& t) const {
    return update_of(trainable, of_.setting_, of_.size_, of_.core_, layout_, t.backward());
  }
  /// The step of these stages; `peak`: of an accelerator, the mean.
  StepEstimate step(const Stages& all, FlopsPerSecond peak) const;

 private:
  double imbalance() const { return of_.setting_.framework.expert_imbalance.value; }

  const StepModel& of_;
  const Layout& layout_;
  const Cost& cost_;
  Fabric job_;
  RankGroups groups_;
  std::vector<BlockTime> times_;
  std::vector<BlockState> states_;
  StageModel<Cost> stages_;
};

template <class Cost>
StepEstimate StepModel::Pass<Cost>::step(const Stages& all, FlopsPerSecond peak) const {
  const Layout& l = layout_;
  const StepSetting& setting = of_.setting_;
  const StageTime& s = all.slowest;
  const BlockTime& pass = s.pass;
  const double passes = double(l.micro_batches);

  StepEstimate e;
  e.compute = passes * (pass.forward + pass.backward);
  e.forward = s.forward();
  e.bubble = (all.sum - s.whole()) / l.interleave;
  e.update = all.update;
  ExposedCommunication& x = e.exposed;
  x.tensor = passes * (pass.tensor_forward + pass.tensor_backward);
  x.context = passes * (pass.context_forward + pass.context_backward);
  x.expert = passes * (pass.expert_forward + pass.expert_backward);
  x.pipeline = stages_.sends_beside ? waiting_for_transfers(l, all) : passes * s.transfers;
  x.parameters = passes * (s.gathers_forward + s.gathers_backward) + all.collection;
  x.gradients = passes * s.scatters + all.reduction;
  x.stragglers =
      (straggler_factor(job_.nodes, 0, setting.framework.step_jitter.value) - 1) * e.compute;
  x.contention = contention({s.state_traffic - x.parameters - x.gradients, s.state_sent,
                             std::max(job_.peer, setting.host_link)},
                            1 - pass.bound_by_memory / (pass.forward + pass.backward),
                            setting.framework.overlap_slowdown.value);
  e.exposed_communication = x.total();
  e.communication =
      x.tensor + x.context + x.expert + passes * (s.transfers + pass.hidden) + s.state_traffic;
  e.sent_per_worker = (passes * pass.sent + s.state_sent) * double(job_.ranks_per_node);
  if (l.zero_stage == 0 && l.replicas_of_state() > 1 && !job_.on_torus)
    e.all_reduce =
        setting.gradient_sum(groups_.state, step_assumptions::kBucketSize, cost_).algorithm;
  e.step = e.compute + e.exposed_communication + e.bubble + e.update;
  e.samples_per_second = Samples{double(l.global_batch())} / e.step;
  e.mfu = of_.fold_.model_flops.v * e.samples_per_second.v / (peak.v * double(l.accelerators()));
  e.waiting_for_host = passes * pass.waiting_for_host;
  e.bottleneck = bottleneck_of(e, passes * pass.bound_by_memory);
  return e;
}

template <class Cost>
StepEstimate StepModel::estimate_with(const Layout& l, const Cost& cost) const {
  const Pass<Cost> pass(*this, l, cost);
  return pass.step(pass.all(), setting_.processor.peak);
}

template <class Cost>
StepEstimate StepModel::estimate_mixed_with(const StageModels& stages, const Layout& l,
                                            const Cost& cost) {
  RECKON_CHECK(std::ssize(stages) == l.pipeline && l.interleave == 1);
  std::map<const StepModel*, std::unique_ptr<Pass<Cost>>> passes;
  for (const auto& of : stages)
    for (const StepModel* model : of)
      if (auto& pass = passes[model]; !pass) pass = std::make_unique<Pass<Cost>>(*model, l, cost);
  Stages all;
  const Pass<Cost>* of_slowest = nullptr;
  for (int stage = 0; stage < l.pipeline; ++stage) {
    const auto& of = stages[std::size_t(stage)];
    StageTime t;
    const Pass<Cost>* slowest = nullptr;
    for (const StepModel* model : of) {
      const Pass<Cost>& pass = *passes.at(model);
      const StageTime here = pass.stage(stage);
      all.update = std::max(all.update, pass.update(here.trainable, here));
      if (slowest != nullptr && here.whole() <= t.whole()) continue;
      t = here;
      slowest = &pass;
    }
    const bool sets_the_pace = of_slowest == nullptr || t.whole() > all.slowest.whole();
    all.add(t, l.interleave);
    all.passes.push_back({t.forward(), t.backward()});
    if (sets_the_pace) of_slowest = slowest;
  }
  return of_slowest->step(all, mean_peak(stages));
}

FlopsPerSecond StepModel::mean_peak(const StageModels& stages) {
  FlopsPerSecond sum{};
  for (const auto& of : stages)
    for (const StepModel* model : of) {
      if (model->setting_.on_cpus()) return {};
      sum += model->setting_.processor.peak / double(of.size());
    }
  return sum / double(stages.size());
}

StepEstimate StepModel::estimate_mixed(const StageModels& stages, const Layout& layout,
                                       const CollectiveCost& cost) {
  return with_type_of(
      cost, [&](const auto& of_type) { return estimate_mixed_with(stages, layout, of_type); });
}

MemoryEstimate StepModel::memory(const Layout& layout) const {
  return memory(layout, states(layout));
}

MemoryEstimate StepModel::memory(const Layout& layout, std::span<const BlockState> states) const {
  MemoryEstimate m = memory_of(fold_.folded, layout, size_, states);
  set_limits(m, setting_.framework, communicators(layout), setting_.memory);
  return m;
}

std::vector<BlockState> StepModel::states(const Layout& layout) const {
  return block_states(fold_.folded, layout, size_, setting_.framework.expert_imbalance.value);
}

std::vector<LayerTime> StepModel::layer_times(const Layout& layout) const {
  const auto costs =
      layer_costs(fold_.folded, layout, size_, core_, setting_.framework.expert_imbalance.value);
  std::vector<LayerTime> times;
  times.reserve(fold_.timed_layers.size());
  for (const LayerId id : fold_.timed_layers) {
    const std::uint32_t kind = fold_.folded.class_of_layer()[index(id)];
    const LayerCost& cost = costs[kind];
    LayerTime t{id, cost.forward, cost.backward, cost.backward_by_memory};
    if (recomputed(fold_.folded.layers()[kind], layout)) t.backward += t.forward;
    times.push_back(t);
  }
  return times;
}

StepSetting step_setting(const Plan& plan, const PlannedWorkload& job, const PlannedPool& pool) {
  StepSetting s;
  s.precision = job.precision;
  s.optimizer = job.optimizer;
  s.fp32_variables = fp32_variables(job.strategy);
  s.wide_sums = wide_sums(job);
  s.processor = processor_of(pool, job.precision);
  const double share = 1.0 / std::max(1, pool.accelerators_per_node);
  s.host_memory = pool.cpu_memory_bandwidth_per_vcpu.value * (pool.machine.vcpus * share);
  s.memory = pool.machine.memory.value;
  s.fabric = fabric_of(plan, job.strategy, job.strategy.workers);
  if (!job.stage_pools.empty()) {  // ranks of one stage talk over their own pool's links
    const Fabric own = fabric_of_worker(pool, job.strategy);
    s.fabric.peer = own.peer;
    s.fabric.peer_reduced = own.peer_reduced;
    s.fabric.peer_latency = own.peer_latency;
    s.fabric.peer_law = own.peer_law;
  }
  s.framework = plan.framework;
  s.gradient_sum = gradient_sum(plan, job.strategy);
  if (pool.accelerator) {
    s.host_link = pool.accelerator->host_bandwidth.value;
    s.memory = pool.accelerator->memory_for_programs();
  } else {
    s.framework.overlap_slowdown = Fact<double>{};  // said of accelerators
  }
  return s;
}

StepSetting step_setting(const Plan& plan, const PlannedWorkload& job) {
  return step_setting(plan, job, *computing_pools(plan).front());
}

}  // namespace reckon
