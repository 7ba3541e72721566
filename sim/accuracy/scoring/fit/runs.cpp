#include "sim/accuracy/scoring/fit/runs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "sim/accuracy/run/layout.h"
#include "sim/forecast/forecast.h"

namespace reckon {
namespace {

/// Of a graph whose nodes' features are looked up: whether they lie on the device, on others or on
/// the host sets its pace, and no source prints it.
bool looks_up_features(const ModelGraph& model) {
  return std::ranges::any_of(model.layers(), [](const Layer& layer) {
    const auto* op = std::get_if<Operator>(&layer.op);
    return op != nullptr && op->table && op->parameters == 0;
  });
}

bool explainable(const PublishedRun& r, const Plan& plan) {
  if (looks_up_features(plan.only_job().model)) return false;
  const PlannedPool& pool = *plan.pool_with(Role::worker);
  if (pool.slice) {
    // Larger slices finish in a minute or two, of which evaluation is a large part.
    constexpr int kMostChips = 512;
    return pool.accelerator->name != "TPU-v2" && pool.slice->chips <= kMostChips;
  }
  const bool own_links = pool.accelerator->peer_bandwidth.has_value();
  return r.run.accelerators == 1 || (pool.nodes_max == 1 && own_links);
}

/// Of a configuration, what its network follows from.
RunConfiguration network_of(const RunConfiguration& run) {
  RunConfiguration n;
  n.model = run.model;
  n.variant = run.variant;
  n.layers = run.layers;
  n.hidden = run.hidden;
  n.heads = run.heads;
  n.kv_heads = run.kv_heads;
  n.head_width = run.head_width;
  n.feed_forward = run.feed_forward;
  n.vocabulary = run.vocabulary;
  n.parameters = run.parameters;
  n.experts = run.experts;
  n.experts_per_token = run.experts_per_token;
  n.shared_experts = run.shared_experts;
  n.gated_feed_forward = run.gated_feed_forward;
  n.sequence_length = run.sequence_length;
  return n;
}

/// Of runs that share an error each further one says less: of many, some that are spread evenly.
void thin(std::vector<FitRun>& runs) {
  constexpr std::size_t kMost = 30;
  using Alike = std::tuple<std::string_view, std::string_view, std::string_view>;
  const auto alike = [](const FitRun& r) { return Alike{r.source, r.stack, r.model}; };
  std::map<Alike, std::size_t> count, seen;
  for (const FitRun& r : runs) ++count[alike(r)];
  std::erase_if(runs, [&](const FitRun& r) {
    const std::size_t n = count[alike(r)], i = seen[alike(r)]++;
    return n > kMost && (i + 1) * kMost / n == i * kMost / n;
  });
}

/// fp16 and bf16 are one for a class of stacks: its runs differ in the range of numbers, not in
/// kernels.
GroupKey group_of(const Accelerator& accelerator, Precision precision, std::string_view stack,
                  const Catalog& catalog) {
  GroupKey key{std::string(row_name(accelerator, catalog)), precision, ""};
  if (has_classes(precision)) key.stacks = catalog.class_of_stack(stack);
  const GroupKey in_bf16{key.accelerator, Precision::bf16, key.stacks};
  const bool pooled = !key.stacks.empty() && precision == Precision::fp16;
  return pooled && prior_of(catalog, in_bf16) != nullptr ? in_bf16 : key;
}

}  // namespace

std::string_view row_name(const Accelerator& accelerator, const Catalog& catalog) {
  for (const Efficiency& e : catalog.efficiencies)
    if (e.accelerator == accelerator.name) return accelerator.name;
  return accelerator.architecture;
}

const Efficiency* prior_of(const Catalog& catalog, const GroupKey& key) {
  const Efficiency* any = nullptr;
  for (const Efficiency& e : catalog.efficiencies) {
    if (e.accelerator != key.accelerator || e.precision != key.precision) continue;
    if (e.stack == kPriorStack) return &e;
    if (e.stack.empty()) any = &e;
  }
  return any;
}

bool has_classes(Precision precision) {
  return precision != Precision::fp32 && precision != Precision::tf32;
}

std::map<GroupKey, std::vector<FitRun>> runs_by_row(std::span<const PublishedRun> runs,
                                                    const Catalog& catalog) {
  std::map<GroupKey, std::vector<FitRun>> groups;
  // By network: as printed, and as it was made (what a program adds to it is not printed).
  using Network = std::tuple<RunConfiguration, std::size_t, std::int64_t, double>;
  std::map<Network, std::shared_ptr<const ModelFold>> folds;
  using Same = std::tuple<RunConfiguration, std::string_view>;
  std::map<Same, std::vector<double>> measured;
  for (const PublishedRun& r : runs) measured[{r.run, r.source}].push_back(r.measured.v);
  std::set<Same> done;
  for (const PublishedRun& r : runs) {
    if (!done.insert({r.run, r.source}).second) continue;
    if (r.trust == 'C' || hides_layout(r.run)) continue;
    auto plan = plan_of_run(r.run, catalog);
    if (!plan || !explainable(r, *plan)) continue;
    const Accelerator& accelerator = *plan->pool_with(Role::worker)->accelerator;
    const GroupKey key = group_of(accelerator, plan->only_job().precision, r.run.stack, catalog);
    const double rate = quantile(measured[{r.run, r.source}], 0.5);
    FitRun run{std::move(*plan),  nullptr, std::log(rate), r.source, r.run.stack,
               model_name(r.run), r};
    const PlannedWorkload& job = run.plan.only_job();
    if (!job.strategy.servers) {
      const ModelGraph& model = job.model;
      auto& fold = folds[{network_of(r.run), model.layers().size(), model.trainable_parameters(),
                          model.model_flops().v}];
      if (!fold) fold = std::make_shared<const ModelFold>(model);
      run.fold = fold;
    }
    groups[key].push_back(std::move(run));
  }
  for (auto& [key, group] : groups) thin(group);
  return groups;
}

}  // namespace reckon
