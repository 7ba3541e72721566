#include "sim/step/servers/parameter_server.h"

#include <algorithm>
#include <cmath>

#include "sim/base/random.h"

namespace reckon {
namespace {

/// Wire bytes of gradients a second that a server's CPUs take in. Per element of 4 bytes: adding to
/// the accumulator is 1 FLOP and 12 bytes of memory traffic; applying with momentum 4 FLOPs and 20
/// bytes, AdamW 12 and 28.
struct ServerWork {
  double flops = 0, bytes = 0;
};
constexpr ServerWork kAdd{1, 12}, kMomentum{4, 20}, kAdamw{12, 28};

BytesPerSecond server_rate(const PlannedPool& pool, ServerWork work) {
  const double vcpus = std::max(1, pool.machine.vcpus);
  const double by_flops = work.flops / (pool.cpu_flops_per_vcpu.value * vcpus);
  const double by_bytes = work.bytes / (pool.cpu_memory_bandwidth_per_vcpu.value.v * vcpus);
  return BytesPerSecond{4.0 / std::max(by_flops, by_bytes)};
}

BytesPerSecond nic_of(const PlannedPool& pool) {
  return pool.machine.network.value * pool.network_link.efficiency.value;
}

}  // namespace

int ParameterServerSetup::workers() const {
  int n = 0;
  for (const auto& c : classes) n += c.count;
  return n;
}

Bytes ParameterServerSetup::values() const {
  Bytes total{};
  for (const auto& g : groups) total += g.size;
  return total;
}

Bytes ParameterServerSetup::sent() const {
  Bytes total{};
  for (const auto& g : groups) total += g.size + 2 * g.ids.size;
  return total;
}

namespace {

/// The most that any server has of all groups together, `on` the bytes of one.
template <class On>
Bytes most_on_a_server(const ParameterServerSetup& setup, const On& on) {
  const auto held_by = [&](int server, int servers) {
    Bytes held{};
    for (const auto& g : setup.groups) held += on(g, server, servers);
    return held;
  };
  if (setup.servers_alike()) return held_by(0, 1) / double(setup.servers);
  Bytes most{};
  for (int k = 0; k < setup.servers; ++k) most = std::max(most, held_by(k, setup.servers));
  return most;
}

}  // namespace

Bytes ParameterServerSetup::to_busiest_server() const {
  return most_on_a_server(*this, [](const ServerGroup& g, int server, int all) {
    return g.values_on(server, all) + 2 * g.ids.on(server, all);
  });
}

Bytes ParameterServerSetup::updated_on_busiest_server() const {
  return most_on_a_server(
      *this, [](const ServerGroup& g, int server, int all) { return g.updated_on(server, all); });
}

bool ParameterServerSetup::servers_alike() const {
  return std::ranges::all_of(groups, [](const ServerGroup& g) { return g.shards.empty(); });
}

namespace {

/// Workers and servers stand under leaves of their own where one leaf does not hold all: what a
/// node has of its leaf's uplinks while all of its leaf's nodes send.
void limit_by_spine(ParameterServerSetup& setup, const PlannedFabric& fabric) {
  int workers = 0;
  for (const WorkerClass& c : setup.classes)
    workers += c.local ? 0 : (c.count + c.per_node - 1) / std::max(1, c.per_node);
  const bool own_nodes = setup.classes.empty() || !setup.classes.front().with_servers;
  const int nodes = workers + (own_nodes ? setup.servers : 0);
  if (fabric.nodes_per_leaf == 0 || nodes <= fabric.nodes_per_leaf) return;
  const auto limited = [&](BytesPerSecond nic, int of_kind) {
    const int in_leaf = std::max(1, std::min(of_kind, fabric.nodes_per_leaf));
    const double share = fabric.nodes_per_leaf / fabric.oversubscription / in_leaf;
    return share < 1 ? nic * share : nic;
  };
  for (WorkerClass& c : setup.classes)
    if (!c.local) c.nic = limited(c.nic, workers);
  setup.server_nic = limited(setup.server_nic, own_nodes ? setup.servers : workers);
}

}  // namespace

ParameterServerSetup server_setup(const Plan& plan, const PlannedWorkload& job,
                                  const ComputeTimes& times, int live_workers, int group_count) {
  const PlannedStrategy& s = job.strategy;
  const ParameterServers& of = *s.servers;
  const auto pools = computing_pools(plan);
  ParameterServerSetup setup;
  const auto workers_per_node = [&](const PlannedPool& p) {
    return std::max(1, p.accelerators_per_node / std::max(1, s.accelerators_per_worker));
  };
  int left = live_workers;
  const PlannedPool& host = *pools.front();
  const PlannedPool* servers = plan.pool_with(Role::parameter_server);
  if (of.count == 0 || of.colocated || !servers) servers = &host;
  setup.servers = std::max(1, of.count);
  if (of.colocated) {  // a node that is not there has no server either
    const int nodes = (live_workers + workers_per_node(host) - 1) / workers_per_node(host);
    setup.servers = std::min(setup.servers, std::max(1, nodes));
  }
  setup.groups = server_groups(job, times, group_count, setup.servers, live_workers);
  if (of.count == 0) {
    // Variables on the first worker's host: its own workers reach them over their bus.
    const BytesPerSecond bus =
        host.accelerator ? host.accelerator->host_bandwidth.value : nic_of(host);
    const int local = std::min(left, workers_per_node(host));
    setup.classes.push_back({.count = local, .per_node = 1, .nic = bus, .local = true});
    left -= local;
  }
  if (of.colocated) {
    // One server each on the first nodes, which are all of the first pool.
    const int per_node = workers_per_node(host);
    const int here = std::min(left, setup.servers * per_node);
    const BytesPerSecond bus =
        host.accelerator ? host.accelerator->host_bandwidth.value : nic_of(host);
    setup.classes.push_back({.count = here,
                             .per_node = std::min(here, per_node),
                             .nic = nic_of(host),
                             .with_servers = true,
                             .bus = bus});
    left -= here;
  }
  for (std::size_t k = 0; k < pools.size() && left > 0; ++k) {
    const PlannedPool& p = *pools[k];
    const int per_node = workers_per_node(p);
    const bool last = k + 1 == pools.size();
    // A chief pool holds its nodes' workers, the last pool all others.
    const int here = last ? left : std::min(left, p.nodes_max * per_node);
    const int full = here / per_node * per_node;
    const WorkerClass c{.count = full, .per_node = per_node, .nic = nic_of(p)};
    if (full > 0) setup.classes.push_back(c);
    if (here > full)
      setup.classes.push_back({.count = here - full, .per_node = here - full, .nic = c.nic});
    left -= here;
  }
  setup.server_nic = nic_of(*servers);
  setup.latency = host.network_link.latency.value;
  const ServerWork update = job.optimizer == Optimizer::adamw ? kAdamw : kMomentum;
  setup.apply_rate = server_rate(*servers, of.synchronous ? kAdd : update);
  setup.update = setup.updated_on_busiest_server() / server_rate(*servers, update);
  limit_by_spine(setup, plan.fabric);
  return setup;
}

double straggler_factor(int workers, int backup_workers, double jitter) {
  if (workers <= 1 || jitter <= 0) return 1;
  const double place = workers - std::min(backup_workers, workers - 1);
  return std::max(1.0, 1 + jitter * normal_quantile((place - 0.375) / (workers + 0.25)));
}

}  // namespace reckon
