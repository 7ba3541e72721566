#include "sim/queue/karpenter/node_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

std::string name_of_kind(const LaunchOffering& offering) {
  if (offering.capacity == CapacityType::on_demand) return offering.type;
  return fmt::format("{} {}", offering.type, to_text(offering.capacity));
}

struct RowsOfKind {
  std::string name;
  int gpus = 0;
  std::vector<SimTime> free_from;  // by row
};

}  // namespace

NodeRows rows_of(const KarpenterRun& run, const KarpenterMarket& market) {
  struct Place {
    std::size_t kind = 0, row = 0;
  };
  std::vector<RowsOfKind> kinds;
  std::vector<Place> places(run.nodes.size());
  for (std::size_t n = 0; n < run.nodes.size(); ++n) {
    const LaunchedNode& node = run.nodes[n];
    const LaunchOffering& offering = market.offerings[node.offering];
    if (offering.size.gpus == 0) continue;
    const std::string name = name_of_kind(offering);
    auto kind = std::ranges::find(kinds, name, &RowsOfKind::name);
    if (kind == kinds.end()) kind = kinds.insert(kind, {name, offering.size.gpus, {}});
    auto row =
        std::ranges::find_if(kind->free_from, [&](SimTime free) { return free <= node.requested; });
    if (row == kind->free_from.end()) row = kind->free_from.insert(row, node.gone);
    *row = node.gone;
    places[n] = {static_cast<std::size_t>(kind - kinds.begin()),
                 static_cast<std::size_t>(row - kind->free_from.begin())};
  }
  NodeRows out;
  std::vector<std::size_t> first;  // row of each kind
  for (const RowsOfKind& kind : kinds) {
    first.push_back(out.groups.size());
    out.groups.insert(out.groups.end(), kind.free_from.size(), {1, kind.gpus, 0});
    out.names.insert(out.names.end(), kind.free_from.size(), kind.name);
  }
  const auto row_of = [&](std::size_t n) {
    return static_cast<int>(first[places[n].kind] + places[n].row);
  };
  for (std::size_t n = 0; n < run.nodes.size(); ++n)
    if (market.offerings[run.nodes[n].offering].size.gpus > 0)
      out.stays.push_back({row_of(n), run.nodes[n].requested, run.nodes[n].gone});
  out.holdings = run.holdings;
  for (Holding& h : out.holdings) h.part.node = row_of(static_cast<std::size_t>(h.part.node));
  return out;
}

}  // namespace reckon
