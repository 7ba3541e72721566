#include "sim/step/network/collective_cost.h"

namespace reckon {
TimedAllReduce SimulatedCollectives::all_reduce(const Fabric& f, Bytes size,
                                                AllReduceKind kind) const {
  if (f.ranks() <= 1) return {};
  if (f.on_torus) return {AllReduceKind::ring, makespan(torus_all_reduce(f, size), network_)};
  return chosen_all_reduce(all_reduces(), f, kind, [&](const AllReduceAlgorithm& each) {
    return makespan(each.graph(f, size, true), network_);
  });
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

namespace {

std::unique_ptr<CollectiveCost> cost_of(const NetworkModel& network, bool by_formula) {
  if (by_formula) return std::make_unique<ClosedForms>();
  return std::make_unique<SimulatedCollectives>(network);
}

}  // namespace

std::unique_ptr<CollectiveCost> cost_in_layouts(const NetworkModel& network) {
  return cost_of(network, network.by_formula() != ByFormula::none);
}

std::unique_ptr<CollectiveCost> cost_of_collectives(const NetworkModel& network) {
  return cost_of(network, network.by_formula() == ByFormula::all);
}

}  // namespace reckon
