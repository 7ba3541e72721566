#include "report/queue/karpenter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/json_parts.h"
#include "report/text.h"

namespace reckon {
namespace {

std::string rounded_count(double value) { return format_count(std::round(value)); }

}  // namespace

std::string nodes_made_text(const TraceResult& r) {
  const KarpenterAnswer& made = *r.karpenter;
  constexpr std::size_t kShown = 3;
  std::string text = fmt::format("{} nodes, {} node hours", rounded_count(made.nodes),
                                 rounded_count(made.node_hours));
  for (std::size_t k = 0; k < std::min(kShown, made.by_offering.size()); ++k) {
    const NodesOfOffering& of = made.by_offering[k];
    text +=
        fmt::format("{}{} {} {} ({})", k == 0 ? ": " : ", ", rounded_count(of.nodes), of.type,
                    to_text(of.capacity), rounded_count(of.usd * r.usd_rate) + " " + r.currency);
  }
  if (made.by_offering.size() > kShown)
    text += fmt::format(" and {} more kinds", made.by_offering.size() - kShown);
  return text;
}

std::string consolidation_text(const TraceResult& r) {
  const KarpenterAnswer& made = *r.karpenter;
  std::string reclaimed =
      made.drifted ? fmt::format("; {} drifted", rounded_count(*made.drifted)) : "";
  if (made.reclaims)
    reclaimed +=
        fmt::format("; the provider took {} spot nodes back", rounded_count(*made.reclaims));
  if (made.refused && *made.refused > 0)
    reclaimed += fmt::format(" and refused {} requests", rounded_count(*made.refused));
  return fmt::format("{} empty nodes, {} of several at a time, {} alone; {} replacements{}",
                     rounded_count(made.empty), rounded_count(made.several),
                     rounded_count(made.single), rounded_count(made.replacements), reclaimed);
}

Json json_of_karpenter(const TraceResult& r) {
  const KarpenterAnswer& made = *r.karpenter;
  Json nodes = Json::array();
  for (const NodesOfOffering& of : made.by_offering)
    nodes.push_back({{"instance_type", of.type},
                     {"capacity_type", to_text(of.capacity)},
                     {"nodes", reckon::number(of.nodes)},
                     {"node_hours", reckon::number(of.node_hours)},
                     {"cost_usd", reckon::number(of.usd)}});
  return {{"nodes", reckon::number(made.nodes)},
          {"node_hours", reckon::number(made.node_hours)},
          {"consolidated_nodes",
           {{"empty", reckon::number(made.empty)},
            {"several", reckon::number(made.several)},
            {"single", reckon::number(made.single)}}},
          {"replacements", reckon::number(made.replacements)},
          {"reclaimed_nodes", made.reclaims ? reckon::number(*made.reclaims) : Json()},
          {"drifted_nodes", made.drifted ? reckon::number(*made.drifted) : Json()},
          {"refused_requests", made.refused ? reckon::number(*made.refused) : Json()},
          {"starved_jobs", reckon::number(made.starved)},
          {"by_instance_type", std::move(nodes)}};
}

}  // namespace reckon
