#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "planner/space/space.h"

// How many nodes an offer rents, of which kind of capacity, and whether quotas do for them.
namespace reckon::planner {

std::vector<PriceSpread> Offer::markets() const {
  std::vector<PriceSpread> out;
  const auto add = [&](const PriceSpread& spread) {
    if (std::ranges::find(out, spread) == out.end()) out.push_back(spread);
  };
  const bool held = pools != pools_lowest || mix.base_price != mix.base_lowest ||
                    mix.fallback_price != mix.fallback_lowest;
  if (held) add({});
  for (const PriceSpread& spread : spreads) add(spread);
  if (mix.share > 0) add(mix.base_spread);
  if (mix.patience) add(mix.fallback_spread);
  return out;
}

int base_nodes(const Offer& offer, int nodes) {
  constexpr double kRounding = 1e-9;
  return std::min(nodes, int(std::ceil(offer.mix.share * nodes - kRounding)));
}

int nodes_at_most(const Offer& offer, const Split& split) {
  if (!offer.made_by.empty()) return offer.of_gang * split.nodes;
  const int rest = split.nodes - base_nodes(offer, split.nodes);
  if (offer.mix.patience) return split.nodes + rest;
  return std::max(split.nodes, offer.bounds.most_nodes(split.nodes)) + spares_of(offer);
}

int nodes_at_most(const Offer& offer, const Split& split, CapacityType type) {
  if (!offer.made_by.empty())
    return offer.made_of[std::size_t(type)] ? nodes_at_most(offer, split) : 0;
  if (!offer.is_mixed()) return offer.pricing == type ? nodes_at_most(offer, split) : 0;
  const int base = base_nodes(offer, split.nodes), rest = split.nodes - base;
  int nodes = type == CapacityType::spot ? rest : 0;
  if (base > 0 && offer.mix.base == type) nodes += base;
  if (offer.mix.patience && type == CapacityType::on_demand) nodes += rest;
  return nodes;
}

int server_nodes(const Question& question, const Split& split) {
  return colocates_servers(question) ? 0 : split.parameter_servers;
}

int nodes_paid(const Offer& offer, const Split& split) {
  return std::max(split.nodes, offer.bounds.least_nodes(split.nodes)) + spares_of(offer);
}

bool may_restart(const Offer& offer, const Split& split) {
  if (!offer.restart || offer.restart->kind == RestartKind::full) return true;
  const StrategyTraits& strategy = traits_of(split.kind);
  if (strategy.servers || !strategy.on_machines) return false;
  switch (offer.restart->kind) {
    case RestartKind::full:
    case RestartKind::in_place:
      return true;
    case RestartKind::warm_spare:
      return !offer.is_mixed() && offer.bounds.text.empty();
    case RestartKind::elastic:
      break;
  }
  const Layout& l = split.layout;
  if (!strategy.gang) return false;
  const int copies = strategy.cuts ? l.data / std::max(1, l.expert) : split.nodes;
  const int least = offer.restart->min.value_or((split.nodes + 1) / 2);
  return split.nodes > 1 && copies > 1 && least < split.nodes;
}

bool within_quotas(const Offer& offer, const Split& split, int per_node) {
  const auto within = [per_node](int nodes, int quota) {
    return std::int64_t{nodes} * per_node <= quota;
  };
  bool all = within(nodes_at_most(offer, split), offer.quota);
  for (const CapacityType type :
       {CapacityType::on_demand, CapacityType::spot, CapacityType::reserved})
    all = all && within(nodes_at_most(offer, split, type), offer.quota_of_type[std::size_t(type)]);
  return all;
}

int quota_for(const Question& question, const Provider& provider, const std::string& region,
              const std::string& accelerator, std::optional<CapacityType> type) {
  std::string key = fmt::format("{}/{}/{}", to_text(provider), region, accelerator);
  if (type) key += fmt::format("/{}", to_text(*type));
  const auto found = question.quota.find(key);
  return found == question.quota.end() ? INT_MAX : found->second;
}

}  // namespace reckon::planner
