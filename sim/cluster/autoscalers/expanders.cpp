#include "sim/cluster/autoscalers/expanders.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// Those of the least score; a score of infinity is no option, unless all are.
template <class Score>
std::vector<ScaleUpOption> least(const std::vector<ScaleUpOption>& options, const Score& score) {
  double best = std::numeric_limits<double>::infinity();
  for (const ScaleUpOption& option : options) best = std::min(best, score(option));
  std::vector<ScaleUpOption> kept;
  for (const ScaleUpOption& option : options)
    if (score(option) == best) kept.push_back(option);
  return kept;
}

double waste_of(const PlannedPool& group, const PlannedPool& asked) {
  const auto idle = [](double has, double used) { return has > 0 ? (has - used) / has : 0; };
  return idle(group.machine.vcpus, asked.machine.vcpus) +
         idle(group.machine.memory.value.v, asked.machine.memory.value.v);
}

/// notExistCoeficient, gpuUnfitnessOverride and supressedUnfitness of cluster-autoscaler/expander/
/// price/price.go. Pods and nodes are as many, so that their number cancels in its ratio of prices.
double price_score(const ScaleUpOption& option, const ScaleUpQuestion& question) {
  constexpr double kGpuUnfitness = 1000, kNotExisting = 2, kFewNodes = 15;
  const PlannedPool& pool = question.rented.pools[option.pool];
  if (!pool.price.known) return std::numeric_limits<double>::infinity();
  double unfitness = kGpuUnfitness;
  if (pool.accelerators_per_node == 0 && pool.machine.vcpus > 0) {
    const double preferred = preferred_vcpus(question.cluster_nodes);
    const double ratio = std::max(preferred / pool.machine.vcpus, pool.machine.vcpus / preferred);
    unfitness = (ratio - 1) * (1 - std::tanh((option.nodes - 1) / kFewNodes)) + 1;
  }
  const double price = double(pool.price.machine.nano_usd_per_hour) +
                       double(pool.price.accelerators.nano_usd_per_hour);
  return price * unfitness * (question.existing[option.pool] ? 1 : kNotExisting);
}

std::vector<ScaleUpOption> best_of(Expander expander, const std::vector<ScaleUpOption>& options,
                                   const ScaleUpQuestion& question,
                                   const std::vector<std::optional<int>>& priorities,
                                   RandomStream& random) {
  using Option = ScaleUpOption;
  switch (expander) {
    case Expander::random: {
      const auto k = static_cast<std::size_t>(random.uniform() * double(options.size()));
      return {options[std::min(k, options.size() - 1)]};
    }
    case Expander::most_pods:
      return least(options, [](const Option& o) { return -double(o.nodes); });
    case Expander::least_nodes:
      return least(options, [](const Option& o) { return double(o.nodes); });
    case Expander::least_waste:
      return least(options, [&](const Option& o) {
        return waste_of(question.rented.pools[o.pool], question.rented.pools[question.home]);
      });
    case Expander::price:
      return least(options, [&](const Option& o) { return price_score(o, question); });
    case Expander::priority:
      return least(options, [&](const Option& o) {
        const auto& priority = priorities[o.pool];
        return priority ? -double(*priority) : std::numeric_limits<double>::infinity();
      });
  }
  return options;
}

}  // namespace

std::vector<std::optional<int>> pool_priorities(const std::vector<ExpanderPriority>& rows,
                                                const PlannedCluster& rented) {
  std::vector<std::optional<int>> priorities(rented.pools.size());
  for (const ExpanderPriority& row : rows)
    for (const std::string& group : row.groups) {
      const std::regex expression(group);
      for (std::size_t p = 0; p < rented.pools.size(); ++p)
        if (std::regex_search(rented.pools[p].name, expression))
          priorities[p] = std::max(priorities[p].value_or(row.priority), row.priority);
    }
  return priorities;
}

std::vector<ScaleUpOption> best_options(const std::vector<Expander>& chain,
                                        std::vector<ScaleUpOption> options,
                                        const ScaleUpQuestion& question,
                                        const std::vector<std::optional<int>>& priorities,
                                        RandomStream& random) {
  RECKON_CHECK(!options.empty());
  for (const Expander expander : chain)
    if (options.size() > 1) options = best_of(expander, options, question, priorities, random);
  return options;
}

int preferred_vcpus(int cluster_nodes) {
  int vcpus = 1;
  for (const int most : {2, 6, 20, 60, 200}) {
    if (cluster_nodes <= most) return vcpus;
    vcpus *= 2;
  }
  return vcpus;
}

bool are_similar(const PlannedPool& a, const PlannedPool& b) {
  const bool accelerators = a.accelerator.has_value() == b.accelerator.has_value() &&
                            (!a.accelerator || a.accelerator->name == b.accelerator->name);
  return accelerators && a.accelerators_per_node == b.accelerators_per_node &&
         a.machine.name == b.machine.name && a.pricing == b.pricing &&
         a.provisioning_model == b.provisioning_model;
}

std::vector<ScaleUpOption> balanced(std::vector<GroupSize> groups, int nodes) {
  std::vector<ScaleUpOption> made;
  for (const GroupSize& group : groups) made.push_back({group.pool, 0});
  for (; nodes > 0; --nodes) {
    std::size_t smallest = groups.size();
    for (std::size_t g = 0; g < groups.size(); ++g)
      if (groups[g].room > 0 &&
          (smallest == groups.size() || groups[g].nodes < groups[smallest].nodes))
        smallest = g;
    if (smallest == groups.size()) break;
    ++groups[smallest].nodes;
    --groups[smallest].room;
    ++made[smallest].nodes;
  }
  std::erase_if(made, [](const ScaleUpOption& o) { return o.nodes == 0; });
  return made;
}

}  // namespace reckon
