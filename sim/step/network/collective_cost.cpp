#include "sim/step/network/collective_cost.h"

#include "sim/base/check.h"

namespace reckon {
namespace {

Collective graph_of(const Fabric& f, Bytes size, AllReduceKind kind) {
  switch (kind) {
    case AllReduceKind::tree:
      return tree_all_reduce(f, size);
    case AllReduceKind::hierarchical:
      return hierarchical_all_reduce(f, size);
    case AllReduceKind::in_network:
      return in_network_all_reduce(f, size);
    case AllReduceKind::automatic:  // chosen_all_reduce asks for none but those of kAllReduces
    case AllReduceKind::ring:
      return ring_all_reduce(f, size);
  }
  RECKON_CHECK(false);
  return {};
}

}  // namespace

TimedAllReduce SimulatedCollectives::all_reduce(const Fabric& f, Bytes size,
                                                AllReduceKind kind) const {
  if (f.ranks() <= 1) return {};
  if (f.on_torus) return {AllReduceKind::ring, makespan(torus_all_reduce(f, size), network_)};
  return chosen_all_reduce(
      f, kind, [&](AllReduceKind k) { return makespan(graph_of(f, size, k), network_); });
}

Seconds SimulatedCollectives::all_gather(const Fabric& f, Bytes size) const {
  return makespan(f.on_torus ? torus_all_gather(f, size) : ring_all_gather(f, size), network_);
}

Seconds SimulatedCollectives::reduce_scatter(const Fabric& f, Bytes size) const {
  return all_gather(f, size);  // the same rounds the other way round
}

Seconds SimulatedCollectives::all_to_all(const Fabric& f, Bytes size) const {
  return makespan(f.on_torus ? torus_all_to_all(f, size) : reckon::all_to_all(f, size), network_);
}

Seconds SimulatedCollectives::send(const Fabric& f, Bytes size) const {
  return makespan(f.on_torus ? torus_send(f, size) : send_to_next(f, size), network_);
}

Seconds SimulatedCollectives::ring_hop(const Fabric& f, Bytes size) const {
  return makespan(f.on_torus ? torus_send(f, size) : reckon::ring_hop(f, size), network_);
}

std::unique_ptr<CollectiveCost> cost_of_collectives(const NetworkModel& network) {
  if (network.by_formula() == ByFormula::all) return std::make_unique<ClosedForms>();
  return std::make_unique<SimulatedCollectives>(network);
}

}  // namespace reckon
