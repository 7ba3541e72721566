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
                    mix.stand_in_price != mix.stand_in_lowest;
  if (held) add({});
  for (const PriceSpread& spread : spreads) add(spread);
  if (mix.share > 0) add(mix.base_spread);
  if (mix.patience) add(mix.stand_in_spread);
  return out;
}

int base_nodes(const Offer& offer, int nodes) {
  constexpr double kRounding = 1e-9;
  return std::min(nodes, int(std::ceil(offer.mix.share * nodes - kRounding)));
}

int nodes_at_most(const Offer& offer, const Shape& shape) {
  if (!offer.made_by.empty()) return offer.of_gang * shape.nodes;
  const int rest = shape.nodes - base_nodes(offer, shape.nodes);
  if (offer.mix.patience) return shape.nodes + rest;
  return std::max(shape.nodes, offer.bounds.most_nodes(shape.nodes)) + spares_of(offer);
}

int nodes_at_most(const Offer& offer, const Shape& shape, CapacityType type) {
  if (!offer.made_by.empty())
    return offer.made_of[std::size_t(type)] ? nodes_at_most(offer, shape) : 0;
  if (!offer.is_mixed()) return offer.pricing == type ? nodes_at_most(offer, shape) : 0;
  const int base = base_nodes(offer, shape.nodes), rest = shape.nodes - base;
  int nodes = type == CapacityType::spot ? rest : 0;
  if (base > 0 && offer.mix.base == type) nodes += base;
  if (offer.mix.patience && type == CapacityType::on_demand) nodes += rest;
  return nodes;
}

int server_nodes(const Question& question, const Shape& shape) {
  return colocates_servers(question) ? 0 : shape.parameter_servers;
}

int nodes_paid(const Offer& offer, const Shape& shape) {
  return std::max(shape.nodes, offer.bounds.least_nodes(shape.nodes)) + spares_of(offer);
}

bool may_restart(const Offer& offer, const Shape& shape) {
  if (!offer.restart || offer.restart->kind == RestartKind::full) return true;
  const StrategyTraits& strategy = traits_of(shape.kind);
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
  const Layout& l = shape.layout;
  if (!strategy.gang) return false;
  const int copies = strategy.cuts ? l.data / std::max(1, l.expert) : shape.nodes;
  const int least = offer.restart->min.value_or((shape.nodes + 1) / 2);
  return shape.nodes > 1 && copies > 1 && least < shape.nodes;
}

bool within_quotas(const Offer& offer, const Shape& shape, int per_node) {
  const auto within = [per_node](int nodes, int quota) {
    return std::int64_t{nodes} * per_node <= quota;
  };
  bool all = within(nodes_at_most(offer, shape), offer.quota);
  for (const CapacityType type :
       {CapacityType::on_demand, CapacityType::spot, CapacityType::reserved})
    all = all && within(nodes_at_most(offer, shape, type), offer.quota_of_type[std::size_t(type)]);
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
