#include "sim/queue/karpenter/consolidation.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// MinInstanceTypesForSpotToSpotConsolidation.
constexpr std::size_t kFlexibility = 15;
/// maxParallel of multi-node consolidation.
constexpr std::size_t kMostTogether = 100;

bool is_spot(const LaunchOffering& o) { return o.capacity == CapacityType::spot; }

/// Their pods, packed on what stays.
Packing without(const ConsolidationView& view, std::span<const Candidate> candidates,
                std::size_t& first_pending) {
  std::set<std::size_t> going;
  std::vector<LimitsLeft> left = view.left;
  std::vector<PackedPod> pods;
  for (const Candidate& c : candidates) {
    going.insert(c.node);
    pods.insert(pods.end(), c.pods.begin(), c.pods.end());
    const LaunchOffering& own = view.offerings[c.offering];
    LimitsLeft& of_pool = left[own.node_pool];
    of_pool.cpu_milli += own.size.cpu_milli, of_pool.memory_mib += own.size.memory_mib;
    of_pool.gpus += own.size.gpus, ++of_pool.nodes;
  }
  first_pending = pods.size();
  pods.insert(pods.end(), view.pending.begin(), view.pending.end());
  std::vector<RoomOfNode> nodes;
  for (const RoomOfNode& node : view.nodes)
    if (!going.contains(node.node)) nodes.push_back(node);
  return pack_pods(pods, nodes, view.offerings, view.node_pools, std::move(left), view.unavailable);
}

/// On nodes that are ready, or on claims.
bool all_placed(const Packing& packing, std::size_t pods) {
  return std::all_of(packing.places.begin(), packing.places.begin() + std::ptrdiff_t(pods),
                     [](Packing::Place place) {
                       return place == Packing::Place::ready_node || place == Packing::Place::claim;
                     });
}

/// There are some, and as many as minValues ask for.
bool is_allowed(const ConsolidationView& view, const NodeClaim& claim) {
  return !claim.offerings.empty() &&
         meets_min_values(view.node_pools[claim.node_pool], view.offerings, claim.offerings);
}

/// Of the claim's offerings, those that may replace the candidates.
bool keep_cheaper(const ConsolidationView& view, std::span<const Candidate> candidates,
                  NodeClaim& claim) {
  std::int64_t price = 0;
  bool all_spot = true;
  for (const Candidate& c : candidates) {
    price += view.offerings[c.offering].nano_usd_per_hour;
    all_spot = all_spot && is_spot(view.offerings[c.offering]);
  }
  const bool spot = std::ranges::any_of(claim.offerings,
                                        [&](std::size_t o) { return is_spot(view.offerings[o]); });
  if (all_spot && spot && !view.spot_to_spot) return false;
  std::erase_if(claim.offerings, [&](std::size_t o) {
    const LaunchOffering& offering = view.offerings[o];
    return offering.nano_usd_per_hour >= price || (spot && !is_spot(offering));
  });
  if (!is_allowed(view, claim)) return false;
  if (!all_spot || !spot || candidates.size() > 1) return true;
  if (claim.offerings.size() < kFlexibility) return false;
  const std::span<const std::size_t> cheapest = claim.offerings;
  std::size_t kept = kFlexibility;
  while (!meets_min_values(view.node_pools[claim.node_pool], view.offerings, cheapest.first(kept)))
    ++kept;
  claim.offerings.resize(kept);
  return true;
}

bool keep_other_types(const ConsolidationView& view, std::span<const Candidate> candidates,
                      NodeClaim& claim) {
  std::int64_t most = INT64_MAX;
  for (const Candidate& c : candidates) {
    const LaunchOffering& own = view.offerings[c.offering];
    const bool offered = std::ranges::any_of(
        claim.offerings, [&](std::size_t o) { return view.offerings[o].type == own.type; });
    if (offered) most = std::min(most, own.nano_usd_per_hour);
  }
  std::erase_if(claim.offerings,
                [&](std::size_t o) { return view.offerings[o].nano_usd_per_hour >= most; });
  return is_allowed(view, claim);
}

}  // namespace

double disruption_cost_of(std::span<const int> priorities, double lifetime_left) {
  constexpr double kMost = 10;
  double cost = 0;
  for (const int priority : priorities)
    cost += std::clamp(1 + std::ldexp(double(priority), -25), -kMost, kMost);
  return cost * lifetime_left;
}

std::optional<ConsolidationCommand> consolidate(const ConsolidationView& view,
                                                std::span<const Candidate> candidates) {
  std::size_t first_pending = 0;
  Packing packing = without(view, candidates, first_pending);
  if (!all_placed(packing, first_pending)) return std::nullopt;
  ConsolidationCommand command;
  for (const Candidate& c : candidates) command.nodes.push_back(c.node);
  if (packing.claims.empty()) return command;
  if (packing.claims.size() != 1) return std::nullopt;
  NodeClaim& claim = packing.claims.front();
  if (!keep_cheaper(view, candidates, claim)) return std::nullopt;
  if (candidates.size() > 1 && !keep_other_types(view, candidates, claim)) return std::nullopt;
  command.replacement = std::move(claim);
  return command;
}

std::optional<ConsolidationCommand> consolidate_several(const ConsolidationView& view,
                                                        std::span<const Candidate> candidates) {
  if (candidates.size() < 2) return std::nullopt;
  std::optional<ConsolidationCommand> best;
  std::size_t low = 1, high = std::min(kMostTogether, candidates.size() - 1);
  while (low <= high) {
    const std::size_t middle = (low + high) / 2;
    if (auto command = consolidate(view, candidates.first(middle + 1))) {
      best = std::move(command);
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return best;
}

std::optional<std::vector<NodeClaim>> replacements_of(const ConsolidationView& view,
                                                      const Candidate& drifted) {
  std::size_t first_pending = 0;
  Packing packing = without(view, std::span(&drifted, 1), first_pending);
  if (!all_placed(packing, first_pending)) return std::nullopt;
  return std::move(packing.claims);
}

std::vector<std::size_t> launch_order(std::span<const LaunchOffering> offerings,
                                      std::span<const std::size_t> choices) {
  RECKON_CHECK(!choices.empty());
  std::vector<std::size_t> order(choices.begin(), choices.end());
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t o) { return is_spot(offerings[o]); });
  return order;
}

}  // namespace reckon
