#include "sim/queue/cluster_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/queue/lists/flavor_checks.h"
#include "sim/queue/lists/job_lists.h"
#include "sim/queue/lists/openb_csv.h"

namespace reckon {

std::vector<std::string> pools_with_gpus(const QueueQuestion& question) {
  std::vector<std::string> pools;
  for (const std::string& name : question.group_names)
    if (std::ranges::find(pools, name) == pools.end()) pools.push_back(name);
  return pools;
}

bool ClusterNodes::read_nodes() {
  std::vector<std::string> names;  // of the groups
  for (const PoolSpec& pool : scenario_.cluster.pools) {
    for (auto& [group, rates] : parts_of(pool, scenario_.prices)) {
      question_.groups.push_back(std::move(group));
      question_.rates.push_back(rates);
      names.push_back(pool.name);
    }
  }
  if (scenario_.trace && !scenario_.trace->nodes.empty()) {
    const auto nodes = source_.read("nodes", scenario_.trace->nodes, read_openb_nodes);
    if (!nodes) return false;
    for (const GpuNode& node : *nodes) {
      question_.groups.push_back({1, node.gpus, 0});
      question_.rates.emplace_back();
      names.push_back("nodes");
    }
  }
  for (std::size_t k = question_.groups.size(); k-- > 0;) {
    if (question_.groups[k].gpus > 0 && question_.groups[k].nodes > 0) continue;
    question_.groups.erase(question_.groups.begin() + static_cast<std::ptrdiff_t>(k));
    question_.rates.erase(question_.rates.begin() + static_cast<std::ptrdiff_t>(k));
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(k));
  }
  if (question_.groups.empty()) {
    source_.error("cluster", "no node has a GPU", "give a pool its accelerator");
    return false;
  }
  question_.group_names = names;
  const auto& fabric = scenario_.cluster.fabric;
  if (fabric && fabric->nodes_per_leaf) question_.nodes_per_leaf = *fabric->nodes_per_leaf;
  return set_cells(false);
}

/// Machines that Karpenter chooses from.
bool ClusterNodes::read_market(const OffersOfKarpenter& offers_of) {
  if (!offers_of) {
    source_.error("cluster.autoscaler", "Karpenter's machines need the catalog",
                  "reckon simulate FILE");
    return false;
  }
  auto offers = offers_of(file_);
  if (!offers) {
    source_.problems.insert(source_.problems.end(), offers.error().begin(), offers.error().end());
    return false;
  }
  question_.karpenter = market_of(scenario_, *offers);
  question_.partitions.of_partition = {kAllCells};
  notes_.insert(notes_.end(), offers->warnings.begin(), offers->warnings.end());
  return true;
}

/// Pools are cells of their own where a policy tells them apart.
bool ClusterNodes::set_cells(bool apart) {
  const std::vector<std::string>& names = question_.group_names;
  question_.partitions.of_partition = {kAllCells};
  std::vector<std::pair<std::string, std::string>> cells;  // pools and their devices
  const std::vector<std::string> pools = pools_with_gpus(question_);
  for (std::size_t k = 0; k < names.size(); ++k)
    question_.groups[k].pool = static_cast<int>(std::ranges::find(pools, names[k]) - pools.begin());
  const bool kueue = policy() == SchedulingPolicy::kueue;
  const bool partitions =
      policy() == SchedulingPolicy::slurm && !question_.scheduler.slurm->partitions.empty();
  if (!kueue && !partitions && !apart && !tells_pools_apart()) return true;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (std::ranges::find(question_.pools, names[k]) == question_.pools.end())
      question_.pools.push_back(names[k]);
    const std::pair of{names[k], question_.groups[k].resource};
    const auto cell = std::ranges::find(cells, of);
    question_.groups[k].cell = static_cast<int>(cell - cells.begin());
    if (cell == cells.end()) cells.push_back(of);
  }
  if (cells.size() > std::size_t(kMostCells)) {
    source_.error("cluster.pools", fmt::format("{} pools, and a scheduler tells {} apart",
                                               cells.size(), kMostCells));
    return false;
  }
  if (kueue) {
    question_.pools.clear();
    for (const auto& [pool, resource] : cells) question_.pools.push_back(pool);
    return check_flavors(*question_.scheduler.kueue, question_, source_);
  }
  return !partitions || set_partitions();
}

/// Pools with devices, or pools on which some jobs do not run.
bool ClusterNodes::tells_pools_apart() const {
  const auto keeps_off = [](const PaceSpec& pace) {
    return std::ranges::any_of(pace.by_pool, [](const auto& p) { return p.second == 0; });
  };
  const bool shared =
      std::ranges::any_of(question_.groups, [](const NodeGroup& g) { return !g.resource.empty(); });
  if (shared) return true;
  if (scenario_.trace) return keeps_off(scenario_.trace->pace);
  if (!scenario_.arrivals)
    return std::ranges::any_of(
        scenario_.jobs, [&](const JobSpec& job) { return !job.duration || keeps_off(job.pace); });
  return std::ranges::any_of(scenario_.arrivals->classes, [&](const ArrivalClassSpec& c) {
    return !c.job.empty() || keeps_off(c.pace);
  });
}

/// Number of a pool with GPUs; nullopt: reported at the path.
std::optional<int> ClusterNodes::pool_number(const std::string& name, const std::string& path) {
  const auto pool = std::find(question_.pools.begin(), question_.pools.end(), name);
  if (pool != question_.pools.end()) return static_cast<int>(pool - question_.pools.begin());
  tell_no_pool(name, path, question_.pools, source_);
  return std::nullopt;
}

bool ClusterNodes::set_partitions() {
  question_.partitions.of_partition.clear();
  bool known = true;
  for (const SlurmPartitionSpec& p : question_.scheduler.slurm->partitions) {
    CellSet cells = p.nodes.empty() ? kAllCells : 0;
    for (const std::string& name : p.nodes) {
      const auto pool =
          pool_number(name, "cluster.scheduler.slurm.partitions." + p.name + ".Nodes");
      known = known && pool.has_value();
      for (const NodeGroup& group : question_.groups)
        if (pool && group.pool == *pool) cells |= CellSet{1} << group.cell;
    }
    question_.partitions.of_partition.push_back(cells);
  }
  return known;
}

}  // namespace reckon
