#include <map>

#include "sim/cluster/disruptions.h"
#include "sim/queue/karpenter/karpenter_life.h"

// What the provider has when Karpenter asks for a node.
namespace reckon::karpenter {
namespace {

using namespace std::chrono_literals;

/// UnavailableOfferingsTTL.
constexpr SimDuration kUnavailable = 3min;

}  // namespace

void Life::make_markets() {
  std::map<std::pair<std::string, CapacityType>, std::size_t> known;
  for (const LaunchOffering& offering : market_.offerings) {
    const auto [at, added] = known.try_emplace({offering.type, offering.capacity}, markets_.size());
    market_of_.push_back(at->second);
    if (!added) continue;
    markets_.emplace_back();
    if (offering.capacity == CapacityType::spot && market_.shortage.on)
      markets_.back().shortages.emplace(market_.shortage, options_.seed, options_.replication,
                                        node_entity(offering.type, 0));
  }
}

bool Life::has_capacity(std::size_t offering) {
  Market& market = markets_[market_of_[offering]];
  if (market.unavailable_until > now_) return false;
  if (!market.shortages || market.shortages->over_at(now_) <= now_) return true;
  market.unavailable_until = now_ + kUnavailable;
  ++out_.refused;
  return false;
}

std::vector<bool> Life::unavailable() const {
  std::vector<bool> without(market_.offerings.size());
  bool any = false;
  for (std::size_t o = 0; o < without.size(); ++o)
    any = (without[o] = markets_[market_of_[o]].unavailable_until > now_) || any;
  return any ? without : std::vector<bool>();
}

SimTime Life::available_after(SimTime time) const {
  SimTime next = SimTime::max();
  for (const Market& market : markets_)
    if (market.unavailable_until > time) next = std::min(next, market.unavailable_until);
  return next;
}

}  // namespace reckon::karpenter
