#include "sim/queue/karpenter/packing.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

namespace reckon {

LimitsLeft limits_of(const NodePoolSpec& node_pool) {
  constexpr double kBytesOfMib = 1024.0 * 1024.0;
  LimitsLeft left;
  if (node_pool.limits.cpu) left.cpu_milli = std::int64_t{*node_pool.limits.cpu} * 1000;
  if (node_pool.limits.memory)
    left.memory_mib = static_cast<std::int64_t>(node_pool.limits.memory->v / kBytesOfMib);
  if (node_pool.limits.gpus) left.gpus = *node_pool.limits.gpus;
  if (node_pool.limits.nodes) left.nodes = *node_pool.limits.nodes;
  return left;
}

bool meets_min_values(const NodePoolSpec& node_pool, std::span<const LaunchOffering> offerings,
                      std::span<const std::size_t> chosen) {
  std::size_t at = 0;  // of the requirements with minValues
  for (const NodeRequirement& r : node_pool.requirements) {
    if (!r.min_values) continue;
    std::set<std::string_view> values;
    for (const std::size_t o : chosen) values.insert(offerings[o].values.at(at));
    if (values.size() < std::size_t(*r.min_values)) return false;
    ++at;
  }
  return true;
}

namespace {

class Packer {
 public:
  Packer(std::span<const PackedPod> pods, std::span<const RoomOfNode> nodes,
         std::span<const LaunchOffering> offerings, std::span<const NodePoolSpec> node_pools,
         std::vector<LimitsLeft> left, const std::vector<bool>& unavailable)
      : pods_(pods), offerings_(offerings), node_pools_(node_pools), left_(std::move(left)) {
    nodes_.assign(nodes.begin(), nodes.end());
    std::stable_partition(nodes_.begin(), nodes_.end(),
                          [](const RoomOfNode& n) { return n.ready; });
    by_weight_.resize(node_pools.size());
    std::iota(by_weight_.begin(), by_weight_.end(), std::size_t{0});
    std::ranges::stable_sort(by_weight_, std::greater<>{},
                             [&](std::size_t k) { return node_pools[k].weight; });
    for (std::size_t o = 0; o < offerings.size(); ++o)
      if (unavailable.empty() || !unavailable[o]) by_price_.push_back(o);
    std::ranges::stable_sort(by_price_, {},
                             [&](std::size_t o) { return offerings[o].nano_usd_per_hour; });
    packing_.places.assign(pods.size(), Packing::Place::nowhere);
  }

  Packing pack() {
    std::vector<std::size_t> order(pods_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>{}, [&](std::size_t p) {
      const NodeRoom& asks = pods_[p].asks;
      return std::tuple(asks.cpu_milli, asks.memory_mib, asks.gpus);
    });
    for (const std::size_t p : order) place(p);
    return std::move(packing_);
  }

 private:
  void place(std::size_t p) {
    const NodeRoom& asks = pods_[p].asks;
    Packing::Place& place = packing_.places[p];
    for (RoomOfNode& node : nodes_) {
      if (!node.free.holds(asks)) continue;
      node.free -= asks;
      place = node.ready ? Packing::Place::ready_node : Packing::Place::coming_node;
      return;
    }
    if (join_claim(p) || make_claim(p)) place = Packing::Place::claim;
  }

  bool join_claim(std::size_t p) {
    std::vector<NodeClaim>& claims = packing_.claims;
    std::ranges::stable_sort(claims, {}, [](const NodeClaim& c) { return c.pods.size(); });
    return std::ranges::any_of(claims, [&](NodeClaim& claim) { return add(claim, p); });
  }

  /// Offerings that do not hold the pod too are no longer in question.
  bool add(NodeClaim& claim, std::size_t p) {
    const NodeRoom together = claim.asks + pods_[p].asks;
    const auto holds = [&](std::size_t o) { return offerings_[o].allocatable.holds(together); };
    std::vector<std::size_t> kept;
    std::ranges::copy_if(claim.offerings, std::back_inserter(kept), holds);
    if (kept.empty() || !meets_min_values(node_pools_[claim.node_pool], offerings_, kept))
      return false;
    claim.offerings = std::move(kept);
    claim.asks = together;
    claim.pods.push_back(pods_[p].pod);
    return true;
  }

  bool make_claim(std::size_t p) {
    for (const std::size_t k : by_weight_) {
      NodeClaim claim;
      claim.node_pool = k;
      bool limited = false;
      for (const std::size_t o : by_price_) {
        if (offerings_[o].node_pool != k) continue;
        if (left_[k].admits(offerings_[o].size))
          claim.offerings.push_back(o);
        else if (offerings_[o].allocatable.holds(pods_[p].asks))
          limited = true;
      }
      packing_.limited = packing_.limited || limited;
      if (!add(claim, p)) continue;
      NodeRoom most;
      for (const std::size_t o : claim.offerings) {
        most.cpu_milli = std::max(most.cpu_milli, offerings_[o].size.cpu_milli);
        most.memory_mib = std::max(most.memory_mib, offerings_[o].size.memory_mib);
        most.gpus = std::max(most.gpus, offerings_[o].size.gpus);
      }
      left_[k].take(most);
      packing_.claims.push_back(std::move(claim));
      return true;
    }
    return false;
  }

  std::span<const PackedPod> pods_;
  std::span<const LaunchOffering> offerings_;
  std::span<const NodePoolSpec> node_pools_;
  std::vector<LimitsLeft> left_;
  std::vector<RoomOfNode> nodes_;
  std::vector<std::size_t> by_weight_;  // NodePools, the highest weight first
  std::vector<std::size_t> by_price_;   // offerings with capacity
  Packing packing_;
};

}  // namespace

Packing pack_pods(std::span<const PackedPod> pods, std::span<const RoomOfNode> nodes,
                  std::span<const LaunchOffering> offerings,
                  std::span<const NodePoolSpec> node_pools, std::vector<LimitsLeft> left,
                  const std::vector<bool>& unavailable) {
  return Packer(pods, nodes, offerings, node_pools, std::move(left), unavailable).pack();
}

}  // namespace reckon
