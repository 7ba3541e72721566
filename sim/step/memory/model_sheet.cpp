#include "sim/step/memory/model_sheet.h"

#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/scenario/layout_rules.h"

namespace reckon {
namespace {

const std::string& parameter_group_of(const Layer& layer) {
  return layer.group.empty() ? layer.name : layer.group;
}

/// "model.layers.17" without its number: groups of one name and one cost are the same thing again.
std::string without_digits(const std::string& name) {
  std::string out;
  for (const char c : name)
    if (c < '0' || c > '9') out += c;
  return out;
}

bool is_another(const LayerGroupCount& group, const LayerGroupCount& next) {
  const auto cost = [](const LayerGroupCount& g) {
    return std::tuple(g.layers, g.parameters, g.trainable, g.forward, g.backward, g.saved);
  };
  return cost(group) == cost(next) && without_digits(group.name) == without_digits(next.name);
}

/// Runs of equal groups become one entry.
std::vector<LayerGroupCount> folded(const std::vector<LayerGroupCount>& groups) {
  std::vector<LayerGroupCount> out;
  for (std::size_t begin = 0; begin < groups.size();) {
    std::size_t end = begin + 1;
    while (end < groups.size() && is_another(groups[begin], groups[end])) ++end;
    LayerGroupCount all = groups[begin];
    all.groups = static_cast<int>(end - begin);
    if (all.groups > 1) all.name += " .. " + groups[end - 1].name;
    all.parameters *= all.groups;
    all.trainable *= all.groups;
    all.forward = all.forward * all.groups;
    all.backward = all.backward * all.groups;
    all.saved = all.saved * all.groups;
    out.push_back(std::move(all));
    begin = end;
  }
  return out;
}

struct Way {
  std::string name;
  PlannedStrategy strategy;
};

PlannedStrategy strategy_of(StrategyKind kind, int accelerators) {
  PlannedStrategy s;
  s.kind = kind;
  s.accelerators_per_worker = accelerators;
  s.layout.stops_recomputing = traits_of(kind).stops_recomputing;
  if (traits_of(kind).servers) s.servers.emplace();
  return s;
}

/// Of `n` accelerators; those without recomputation, which comes on top of each.
std::vector<Way> ways(bool tpu, int n) {
  if (tpu) return {{"tpu slice", strategy_of(StrategyKind::tpu, 1)}};
  std::vector<Way> out{
      {"single or data parallel", strategy_of(StrategyKind::single, 1)},
      {"worker of parameter servers", strategy_of(StrategyKind::parameter_server, 1)}};
  if (n < 2) return out;
  for (const int stage : {1, 2, 3}) {
    PlannedStrategy s = strategy_of(StrategyKind::sharded, n);
    s.layout.zero_stage = stage;
    out.push_back({fmt::format("ZeRO {} over {}", stage, n), s});
  }
  PlannedStrategy tensor = strategy_of(StrategyKind::model_parallel, n);
  tensor.layout.tensor = n;
  tensor.layout.sequence_parallel = true;
  out.push_back({fmt::format("tensor parallel over {}", n), tensor});
  PlannedStrategy pipeline = strategy_of(StrategyKind::model_parallel, n);
  pipeline.layout.pipeline = n;
  out.push_back({fmt::format("pipeline over {}", n), pipeline});
  return out;
}

/// A pipeline's passes are as many as its stages: fewer leave stages idle.
std::int64_t global_batch(const PlannedStrategy& s, int batch) {
  return std::int64_t{batch} * (s.accelerators() / s.layout.replica()) * s.layout.pipeline;
}

bool can_be(const LayoutLimits& limits, const PlannedWorkload& job) {
  return !cuts_the_model(job.strategy) ||
         broken_rules(limits, layout_of(job), job.strategy.accelerators(), job.global_batch)
             .empty();
}

Plan plan_on(const MemoryQuestion& question) {
  Plan plan;
  plan.framework = question.framework;
  PlannedPool pool;
  if (question.accelerator) {
    pool.accelerator = question.accelerator;
  } else {
    pool.accelerator.emplace();
    pool.accelerator->memory = Fact<Bytes>{Bytes{std::numeric_limits<double>::infinity()}};
  }
  pool.accelerators_per_node = 1;
  plan.pools.push_back(std::move(pool));
  return plan;
}

}  // namespace

std::vector<LayerGroupCount> layer_group_counts(const ModelGraph& model, Bytes per_element) {
  std::vector<LayerGroupCount> groups;
  for (const Layer& layer : model.layers()) {
    const LayerCount& count = model.counts()[index(layer.id)];
    const std::string& name = parameter_group_of(layer);
    if (groups.empty() || groups.back().name != name) groups.push_back({.name = name});
    LayerGroupCount& group = groups.back();
    ++group.layers;
    group.parameters += count.parameters;
    group.trainable += count.trainable_parameters;
    group.forward += count.forward;
    group.backward += count.backward;
    group.saved += count.saved_elements * per_element + count.saved_fixed;
  }
  return folded(groups);
}

std::vector<MemoryCase> memory_by_strategy(const MemoryQuestion& question) {
  RECKON_CHECK(question.model != nullptr);
  const Plan plan = plan_on(question);
  PlannedWorkload job;
  job.model = *question.model;
  job.precision = question.precision;
  job.optimizer = question.optimizer;
  std::vector<MemoryCase> cases;
  const bool tpu = question.accelerator && question.accelerator->kind == AcceleratorKind::tpu;
  const LayoutLimits limits(*question.model);
  for (const Way& way : ways(tpu, question.accelerators)) {
    job.strategy = way.strategy;
    job.strategy.layout.micro_batch = question.batch_per_accelerator;
    job.global_batch = global_batch(job.strategy, question.batch_per_accelerator);
    if (!can_be(limits, job)) continue;
    cases.push_back({way.name, estimate_memory(plan, job)});
    job.strategy.layout.recompute = Recompute::full;
    const MemoryEstimate again = estimate_memory(plan, job);
    // Recomputation that saves nothing here is no way of its own.
    if (again.required() < cases.back().memory.required())
      cases.push_back({way.name + ", recompute full", again});
  }
  return cases;
}

}  // namespace reckon
