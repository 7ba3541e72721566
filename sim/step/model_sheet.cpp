#include "sim/step/model_sheet.h"

#include <limits>
#include <tuple>

#include "sim/base/check.h"

namespace reckon {
namespace {

const std::string& group_of(const Layer& layer) {
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
  StrategyKind kind;
  Recompute recompute = Recompute::none;
};

std::vector<Way> ways(bool tpu) {
  std::vector<Way> out;
  const auto add = [&](const std::string& name, StrategyKind kind) {
    out.push_back({name, kind});
    out.push_back({name + ", recompute selective", kind, Recompute::selective});
    out.push_back({name + ", recompute full", kind, Recompute::full});
  };
  if (tpu) {
    add("tpu slice", StrategyKind::tpu);
    return out;
  }
  add("single or data parallel", StrategyKind::single);
  add("worker of parameter servers", StrategyKind::parameter_server);
  return out;
}

Plan plan_on(const MemoryQuestion& question) {
  Plan plan;
  plan.framework.reserve = question.reserve;
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
    const std::string& name = group_of(layer);
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
  job.batch_per_accelerator = question.batch_per_accelerator;
  std::vector<MemoryCase> cases;
  const bool tpu = question.accelerator && question.accelerator->kind == AcceleratorKind::tpu;
  for (const Way& way : ways(tpu)) {
    job.strategy.kind = way.kind;
    job.strategy.recompute = way.recompute;
    const MemoryEstimate memory = estimate_memory(plan, job);
    // Recomputation that saves nothing here is no way of its own.
    if (way.recompute != Recompute::none && memory.required() >= cases.back().memory.required())
      continue;
    cases.push_back({way.name, memory});
  }
  return cases;
}

}  // namespace reckon
