#include "sim/step/network/collective_times.h"

#include <algorithm>

#include "sim/step/network/collective_graphs.h"
#include "sim/step/network/torus_times.h"

namespace reckon {

Seconds ring_hop_time(const Fabric& f, Bytes chunk) {
  if (f.on_torus) return torus_hop_time(f, chunk);
  Seconds t{};
  if (f.ranks_per_node > 1) t = f.peer_latency + chunk / f.peer;
  if (f.nodes > 1) t = std::max(t, f.nic_latency + chunk / f.one_out());
  return t;
}

Seconds all_gather_time(const Fabric& f, Bytes size) {
  return f.on_torus ? torus_gather_time(f, size) : time_of(f, all_gather_rounds(f, size));
}
Seconds reduce_scatter_time(const Fabric& f, Bytes size) { return all_gather_time(f, size); }

Seconds all_to_all_time(const Fabric& f, Bytes size) {
  if (f.on_torus) return torus_exchange_time(f, size);
  const int n = f.ranks(), g = f.ranks_per_node;
  if (n <= 1) return {};
  const Bytes piece = size / double(n);
  const ExchangeStart start = exchange_start(f, size);
  Seconds t{};
  if (g > 1) t = start.inside + peer_flows(f) * piece / f.peer;
  if (n > g) t = std::max(t, start.between + double(g) * double(n - g) * piece / f.nic);
  if (f.has_spine()) t = std::max(t, start.between + flows_out_of_leaf(f) * piece / f.uplink());
  return t;
}

Seconds send_time(const Fabric& f, Bytes size) {
  if (f.ranks() <= 1) return {};
  if (f.on_torus) return torus_hop_time(f, size);
  return f.nodes > 1 ? f.nic_latency + double(f.ranks_per_node) * size / f.one_out()
                     : f.peer_latency + size / f.peer;
}

Fabric group_of(const Fabric& job, std::int64_t stride, std::int64_t size) {
  Fabric f = job;
  const std::int64_t per_node = job.ranks_per_node;
  const std::int64_t in_node =
      job.nodes == 1 ? size : std::min(size, std::max<std::int64_t>(1, per_node / stride));
  f.ranks_per_node = int(in_node);
  f.nodes = int((size + in_node - 1) / in_node);
  // All ranks of a node are in some such group, and each group has a like part of the NIC.
  f.nic = job.nic * std::min(1.0, double(in_node) / double(per_node));
  f.rails = int(std::min<std::int64_t>(job.rails, in_node));
  // Its nodes stand `apart` from each other, and so many groups share a leaf's uplinks.
  const std::int64_t apart = std::max<std::int64_t>(1, stride / per_node);
  if (job.leaf_nodes > 0) f.leaf_nodes = int(std::max<std::int64_t>(1, job.leaf_nodes / apart));
  return f;
}

}  // namespace reckon
