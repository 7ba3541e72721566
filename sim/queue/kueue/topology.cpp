#include "sim/queue/kueue/topology.h"

#include <algorithm>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// The pods of one job on the nodes of one pool.
class TopologyPlacement {
 public:
  TopologyPlacement(const FreeNodes& free, const std::vector<int>& nodes, int gpus_of_node,
                    const std::vector<KueueLevelSpec>& levels, int gpus)
      : free_(free),
        nodes_(nodes),
        whole_gpus_(gpus_of_node),
        levels_(levels),
        whole_(gpus / gpus_of_node),
        rest_(gpus % gpus_of_node) {}

  /// Within one domain of the level, the smallest that suffices; nullopt: none does.
  std::optional<std::vector<NodePart>> within_one(std::size_t level) const {
    std::optional<Domain> best;
    int fewest = 0;
    for (const Domain& domain : split({0, nodes_.size()}, level)) {
      if (!suffices(domain)) continue;
      const int there = whole_free(domain);
      if (best && there >= fewest) continue;
      best = domain;
      fewest = there;
    }
    if (!best) return std::nullopt;
    return taken(*best, level);
  }

  /// Over several domains of the widest level.
  std::optional<std::vector<NodePart>> over_several() const {
    const Domain all{0, nodes_.size()};
    if (!suffices(all)) return std::nullopt;
    return taken(all, kAboveAll);
  }

 private:
  static constexpr std::size_t kAboveAll = static_cast<std::size_t>(-1);
  struct Domain {
    std::size_t begin = 0, end = 0;  // in nodes_
  };

  std::vector<Domain> split(const Domain& domain, std::size_t level) const {
    const auto size = static_cast<std::size_t>(levels_[level].nodes);
    std::vector<Domain> parts;
    for (std::size_t at = domain.begin; at < domain.end; at += size)
      parts.push_back({at, std::min(at + size, domain.end)});
    return parts;
  }
  int free_of(std::size_t at) const { return free_.free_of(nodes_[at]); }
  int whole_free(const Domain& domain) const {
    int count = 0;
    for (std::size_t at = domain.begin; at < domain.end; ++at)
      count += free_of(at) == whole_gpus_ ? 1 : 0;
    return count;
  }
  /// The node for the rest: of those in use that with the fewest free GPUs that suffice.
  std::optional<std::size_t> beside_others(const Domain& domain) const {
    std::optional<std::size_t> best;
    for (std::size_t at = domain.begin; at < domain.end; ++at) {
      const int free = free_of(at);
      if (free < rest_ || free == whole_gpus_) continue;
      if (!best || free < free_of(*best)) best = at;
    }
    return best;
  }
  bool suffices(const Domain& domain) const {
    const bool one_more = rest_ > 0 && !beside_others(domain);
    return whole_free(domain) >= whole_ + (one_more ? 1 : 0);
  }

  std::vector<NodePart> taken(const Domain& domain, std::size_t level) const {
    std::vector<std::size_t> whole;
    const auto rest_at = rest_ > 0 ? beside_others(domain) : std::nullopt;
    const bool one_more = rest_ > 0 && !rest_at;
    take_whole(domain, level, whole_ + (one_more ? 1 : 0), whole);
    std::vector<NodePart> parts;
    for (const std::size_t at : whole) parts.push_back({nodes_[at], whole_gpus_});
    if (one_more) parts.back().gpus = rest_;
    if (rest_at) parts.push_back({nodes_[*rest_at], rest_});
    return parts;
  }

  /// So many free nodes of the domain, which is of `level`.
  void take_whole(const Domain& domain, std::size_t level, int count,
                  std::vector<std::size_t>& out) const {
    const std::size_t below = level == kAboveAll ? 0 : level + 1;
    if (below >= levels_.size()) {
      for (std::size_t at = domain.begin; at < domain.end && count > 0; ++at)
        if (free_of(at) == whole_gpus_) {
          out.push_back(at);
          --count;
        }
      RECKON_CHECK(count == 0);
      return;
    }
    struct Part {
      Domain domain;
      int free = 0;
    };
    std::vector<Part> parts;
    for (const Domain& part : split(domain, below)) parts.push_back({part, whole_free(part)});
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.free > b.free; });
    for (std::size_t k = 0; count > 0; ++k) {
      RECKON_CHECK(k < parts.size());
      if (parts[k].free >= count) {
        std::size_t smallest = k;  // that suffices, the first of equals
        for (std::size_t other = k + 1; other < parts.size() && parts[other].free >= count; ++other)
          if (parts[other].free < parts[smallest].free) smallest = other;
        return take_whole(parts[smallest].domain, below, count, out);
      }
      take_whole(parts[k].domain, below, parts[k].free, out);
      count -= parts[k].free;
    }
  }

  const FreeNodes& free_;
  const std::vector<int>& nodes_;
  int whole_gpus_;
  const std::vector<KueueLevelSpec>& levels_;
  int whole_, rest_;
};

}  // namespace

KueueTopology::KueueTopology(const KueueSpec& kueue, std::span<const NodeGroup> groups,
                             std::span<const std::string> pools)
    : pools_(pools.size()) {
  int node = 0;
  for (const NodeGroup& group : groups) {
    Pool& pool = pools_[static_cast<std::size_t>(group.cell)];
    pool.gpus = std::max(pool.gpus, group.gpus);
    for (int k = 0; k < group.nodes; ++k) pool.nodes.push_back(node++);
  }
  for (const KueueResourceFlavorSpec& flavor : kueue.resource_flavors) {
    const auto topology =
        std::ranges::find(kueue.topologies, flavor.topology, &KueueTopologySpec::name);
    RECKON_CHECK(topology != kueue.topologies.end());
    for (std::size_t k = 0; k < pools.size(); ++k)
      if (pools[k] == flavor.name) pools_[k].levels = topology->levels;
  }
}

bool KueueTopology::has_level(int pool, std::string_view level) const {
  const auto& levels = pools_[static_cast<std::size_t>(pool)].levels;
  return level.empty() ||
         std::ranges::find(levels, level, &KueueLevelSpec::node_label) != levels.end();
}

std::optional<std::vector<NodePart>> KueueTopology::place(const FreeNodes& nodes, int pool,
                                                          int gpus,
                                                          const TopologyRequest& request) const {
  const Pool& of = pools_[static_cast<std::size_t>(pool)];
  const auto found = std::ranges::find(of.levels, request.level, &KueueLevelSpec::node_label);
  RECKON_CHECK(found != of.levels.end());
  const TopologyPlacement placement(nodes, of.nodes, of.gpus, of.levels, gpus);
  for (auto level = static_cast<std::size_t>(found - of.levels.begin()) + 1; level-- > 0;) {
    if (auto parts = placement.within_one(level)) return parts;
    if (request.required) return std::nullopt;
  }
  return placement.over_several();
}

}  // namespace reckon
