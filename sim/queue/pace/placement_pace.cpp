#include "sim/queue/pace/placement_pace.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/check.h"

namespace reckon {

NodePlaces node_places(std::span<const NodeGroup> groups, std::span<const std::string> names,
                       int nodes_per_leaf) {
  struct Pool {
    std::int32_t number = 0;
    int nodes = 0;  // so far
    std::int32_t leaf = 0;
  };
  NodePlaces places;
  std::map<std::string, Pool> pools;
  std::int32_t leaves = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto [at, added] = pools.try_emplace(g < names.size() ? names[g] : "");
    Pool& pool = at->second;
    if (added) pool.number = static_cast<std::int32_t>(pools.size()) - 1;
    if (!groups[g].resource.empty()) pool.nodes = 0;  // the same nodes once more
    for (int k = 0; k < groups[g].nodes; ++k, ++pool.nodes) {
      if (nodes_per_leaf > 0 && pool.nodes % nodes_per_leaf == 0) pool.leaf = leaves++;
      places.pool.push_back(pool.number);
      places.leaf.push_back(pool.leaf);
    }
  }
  return places;
}

double JobPaces::pace(std::size_t job, std::span<const NodePart> on) const {
  const std::int32_t number = jobs_[job].pace;
  if (number < 0 || on.empty()) return 1;
  std::vector<std::int32_t> leaves;
  for (const NodePart& part : on)
    leaves.push_back(places_.leaf[static_cast<std::size_t>(part.node)]);
  std::sort(leaves.begin(), leaves.end());
  const auto different =
      static_cast<std::size_t>(std::unique(leaves.begin(), leaves.end()) - leaves.begin());
  double slowest = 0;
  for (const NodePart& part : on) {
    const auto pool = static_cast<std::size_t>(places_.pool[static_cast<std::size_t>(part.node)]);
    const std::vector<double>& by_leaves = paces_[static_cast<std::size_t>(number)].by_pool[pool];
    const double own = by_leaves[std::min(different, by_leaves.size()) - 1];
    slowest = slowest > 0 ? std::min(slowest, own) : own;
  }
  RECKON_CHECK(slowest > 0);
  return slowest;
}

SimDuration JobPaces::time(std::size_t job, std::span<const NodePart> on, SimDuration work) const {
  const double own = pace(job, on);
  return own == 1 ? work : SimDuration{std::llround(std::ceil(double(work.count()) / own))};
}

SimDuration JobPaces::work(std::size_t job, std::span<const NodePart> on, SimDuration time) const {
  const double own = pace(job, on);
  return own == 1 ? time : SimDuration{std::llround(std::floor(double(time.count()) * own))};
}

}  // namespace reckon
