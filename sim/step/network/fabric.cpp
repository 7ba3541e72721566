#include <algorithm>

#include "sim/base/check.h"
#include "sim/step/network/collectives.h"

namespace reckon {
namespace {

/// All chips of a slice.
Fabric fabric_of_slice(const PlannedPool& pool) {
  RECKON_CHECK(pool.slice && pool.accelerator && pool.accelerator->peer_bandwidth);
  const int dimensions = std::max(1, pool.accelerator->torus_dimensions);
  // A chip has two links an axis; the catalog gives all of them together, one direction.
  const BytesPerSecond link = pool.accelerator->peer_bandwidth->value *
                              pool.peer_link.efficiency.value / (2.0 * dimensions);
  return torus_fabric(pool.slice->torus, pool.slice->wraps, link, pool.peer_link.latency.value);
}

}  // namespace

CollectiveLaw law_of(const LinkClass& link) {
  CollectiveLaw law;
  if (link.call) law.call = link.call->value;
  if (link.pieces) law.pieces = link.pieces->value;
  return law;
}

Fabric fabric_of_worker(const PlannedPool& pool, const PlannedStrategy& strategy) {
  Fabric f;
  f.ranks_per_node = std::max(1, strategy.accelerators_per_worker);
  if (pool.accelerator) {
    const Accelerator& a = *pool.accelerator;
    // Without links of their own, accelerators talk through the host's bus.
    const BytesPerSecond printed =
        a.peer_bandwidth ? a.peer_bandwidth->value : a.host_bandwidth.value;
    f.peer = printed * pool.peer_link.efficiency.value;
  }
  f.peer_latency = pool.peer_link.latency.value;
  if (pool.accelerator) {
    f.peer_law = law_of(pool.peer_link);
    f.nic_law = law_of(pool.network_link);
    if (pool.peer_link.reduction) f.peer_reduced = f.peer * pool.peer_link.reduction->value;
  }
  BytesPerSecond network = pool.machine.network.value;
  // Of a ring one flow crosses each NIC.
  if (const auto& flow = pool.network_link.flow) network = std::min(network, flow->value);
  f.nic = network * pool.network_link.efficiency.value;
  f.nic_latency = pool.network_link.latency.value;
  return f;
}

Fabric fabric_of(const Plan& plan, const PlannedStrategy& strategy, int workers) {
  const auto pools = computing_pools(plan);
  if (pools.front()->slice) return fabric_of_slice(*pools.front());
  Fabric slowest = fabric_of_worker(*pools.front(), strategy);
  const int ranks = workers * slowest.ranks_per_node;
  int per_node = std::max(1, pools.front()->accelerators_per_node);
  for (const auto* pool : pools) {
    const Fabric f = fabric_of_worker(*pool, strategy);
    slowest.peer = std::min(slowest.peer, f.peer);
    slowest.peer_reduced = std::min(slowest.peer_reduced, f.peer_reduced);
    slowest.nic = std::min(slowest.nic, f.nic);
    slowest.peer_latency = std::max(slowest.peer_latency, f.peer_latency);
    slowest.nic_latency = std::max(slowest.nic_latency, f.nic_latency);
    per_node = std::min(per_node, std::max(1, pool->accelerators_per_node));
  }
  slowest.ranks_per_node = std::min(ranks, std::max(per_node, slowest.ranks_per_node));
  slowest.nodes = (ranks + slowest.ranks_per_node - 1) / slowest.ranks_per_node;
  const PlannedFabric& wires = plan.fabric;
  // Every accelerator sends through the NIC next to it: few of a node's leave the others idle.
  if (pools.front()->accelerator && slowest.ranks_per_node < wires.nics)
    slowest.nic = slowest.nic * (double(slowest.ranks_per_node) / wires.nics);
  slowest.rails = wires.rails ? wires.nics : 1;
  slowest.leaf_nodes = wires.nodes_per_leaf;
  slowest.oversubscription = wires.oversubscription;
  slowest.reduces = wires.in_network_reduction;
  return slowest;
}

}  // namespace reckon
