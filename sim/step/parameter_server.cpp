#include "sim/step/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

#include "sim/base/check.h"
#include "sim/base/limits.h"
#include "sim/base/random.h"
#include "sim/step/buckets.h"

namespace reckon {
namespace {

constexpr Bytes kVariable{4};  // fp32 on the servers and on the wire

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

Bytes ParameterServerSetup::variables() const {
  Bytes total{};
  for (const auto& g : groups) total += g.size;
  return total;
}

Bytes ParameterServerSetup::of_busiest_server() const {
  if (servers_alike()) return variables() / double(servers);
  Bytes most{};
  for (int k = 0; k < servers; ++k) {
    Bytes held{};
    for (const auto& g : groups)
      held += g.shards.empty() ? g.size / double(servers) : g.shards[std::size_t(k)];
    most = std::max(most, held);
  }
  return most;
}

bool ParameterServerSetup::servers_alike() const {
  return std::ranges::all_of(groups, [](const ServerGroup& g) { return g.shards.empty(); });
}

namespace {

/// Of one variable. So many are as good as an even split, and no partition of a byte is endless.
constexpr double kMostPieces = 65'536;

/// What is held for each variable on each server must fit in memory.
void check_placement(std::size_t variables, int servers) {
  constexpr double kMost = 1e8;
  if (double(variables) * servers > kMost)
    throw TooMuchWork(
        fmt::format("{} variables on {} parameter servers are more than {:.0e} shards", variables,
                    servers, kMost),
        "fewer parameter servers, or shards: even");
}

/// The server that holds least, the first of equals.
class ServersByLoad {
 public:
  explicit ServersByLoad(int servers) {
    for (int k = 0; k < servers; ++k) heap_.emplace(0.0, k);
  }
  std::size_t give(Bytes piece) {
    const auto [held, server] = heap_.top();
    heap_.pop();
    heap_.emplace(held + piece.v, server);
    return std::size_t(server);
  }

 private:
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>>
      heap_;
};

}  // namespace

std::vector<std::vector<Bytes>> placed_on_servers(std::span<const Bytes> variables, int servers,
                                                  ServerShards rule, Bytes partition) {
  check_placement(variables.size(), servers);
  std::vector<std::vector<Bytes>> placed;
  ServersByLoad by_load(servers);
  std::size_t next = 0;
  for (const Bytes variable : variables) {
    auto& of = placed.emplace_back(std::size_t(servers), Bytes{});
    if (rule == ServerShards::even) {
      for (Bytes& part : of) part = variable / double(servers);
      continue;
    }
    const double pieces =
        partition.v > 0 ? std::clamp(std::ceil(variable / partition), 1.0, kMostPieces) : 1;
    for (double piece = 0; piece < pieces && variable.v > 0; ++piece) {
      const std::size_t server =
          rule == ServerShards::round_robin ? next++ % of.size() : by_load.give(variable / pieces);
      of[server] += variable / pieces;
    }
  }
  return placed;
}

namespace {

/// Where the variables of each group are, layer by layer.
class GroupShards {
 public:
  GroupShards(const PlannedWorkload& job, const ComputeTimes& times, int servers) {
    const ParameterServers& s = *job.strategy.servers;
    if (s.shards == ServerShards::even || servers < 2) return;
    std::vector<Bytes> variables;
    for (const LayerTime& t : times.layers)
      variables.push_back(double(job.model.counts()[index(t.layer)].trainable_parameters) *
                          kVariable);
    placed_ = placed_on_servers(variables, servers, s.shards, s.partition);
  }
  /// The next layer's, added to a group's.
  void add_layer(std::vector<Bytes>& group) {
    if (placed_.empty()) return;
    const auto& layer = placed_[next_++];
    group.resize(layer.size());
    for (std::size_t k = 0; k < layer.size(); ++k) group[k] += layer[k];
  }

 private:
  std::vector<std::vector<Bytes>> placed_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<ServerGroup> server_groups(const PlannedWorkload& job, const ComputeTimes& times,
                                       int count, int servers) {
  GroupShards shards(job, times, servers);
  ServerGroupRule rule(double(job.model.trainable_parameters()) * kVariable, count);
  std::vector<ServerGroup> groups;
  ServerGroup open;
  for (const LayerTime& t : times.layers) {
    open.forward += t.forward;
    open.backward += t.backward;
    const Bytes variables =
        double(job.model.counts()[index(t.layer)].trainable_parameters) * kVariable;
    open.size += variables;
    shards.add_layer(open.shards);
    if (rule.add(variables)) {
      groups.push_back(open);
      open = {};
    }
  }
  if (open.size.v > 0 || groups.empty()) {
    groups.push_back(open);
  } else {
    groups.back().forward += open.forward;
    groups.back().backward += open.backward;
  }
  return groups;
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
  setup.groups = server_groups(job, times, group_count, setup.servers);
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
  setup.update = setup.of_busiest_server() / server_rate(*servers, update);
  limit_by_spine(setup, plan.fabric);
  return setup;
}

double straggler_factor(int workers, int backup_workers, double jitter) {
  if (workers <= 1 || jitter <= 0) return 1;
  const double place = workers - std::min(backup_workers, workers - 1);
  return std::max(1.0, 1 + jitter * normal_quantile((place - 0.375) / (workers + 0.25)));
}

}  // namespace reckon
