#include "sim/step/parameter_server.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/step/buckets.h"
#include "sim/step/worker_pools.h"

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

Bytes ParameterServerSetup::variables() const {
  Bytes total{};
  for (const auto& g : groups) total += g.size;
  return total;
}

std::vector<ServerGroup> server_groups(const PlannedWorkload& job, const ComputeTimes& times,
                                       int count) {
  constexpr Bytes kVariable{4};  // fp32 on the servers and on the wire
  ServerGroupRule rule(double(job.model.trainable_parameters()) * kVariable, count);
  std::vector<ServerGroup> groups;
  ServerGroup open;
  for (const LayerTime& t : times.layers) {
    open.forward += t.forward;
    open.backward += t.backward;
    const Bytes variables =
        double(job.model.counts()[index(t.layer)].trainable_parameters) * kVariable;
    open.size += variables;
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

ParameterServerSetup server_setup(const Plan& plan, const PlannedWorkload& job,
                                  const ComputeTimes& times, int live_workers, int group_count) {
  const PlannedStrategy& s = job.strategy;
  const auto pools = worker_pools(plan);
  ParameterServerSetup setup;
  setup.groups = server_groups(job, times, group_count);
  const auto workers_per_node = [&](const PlannedPool& p) {
    return std::max(1, p.accelerators_per_node / std::max(1, s.accelerators_per_worker));
  };
  int left = live_workers;
  const PlannedPool& host = *pools.front();
  const PlannedPool* servers = pool_of(plan, Role::parameter_server);
  if (s.parameter_servers == 0 || !servers) servers = &host;
  setup.servers = std::max(1, s.parameter_servers);
  if (s.parameter_servers == 0) {
    // Variables on the first worker's host: its own workers reach them over their bus.
    const BytesPerSecond bus =
        host.accelerator ? host.accelerator->host_bandwidth.value : nic_of(host);
    const int local = std::min(left, workers_per_node(host));
    setup.classes.push_back({.count = local, .per_node = 1, .nic = bus, .local = true});
    left -= local;
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
  setup.apply_rate = server_rate(*servers, s.synchronous ? kAdd : update);
  setup.update = setup.variables() / double(setup.servers) / server_rate(*servers, update);
  return setup;
}

double straggler_factor(int workers, int backup_workers, double jitter) {
  if (workers <= 1 || jitter <= 0) return 1;
  const double place = workers - std::min(backup_workers, workers - 1);
  return std::max(1.0, 1 + jitter * normal_quantile((place - 0.375) / (workers + 0.25)));
}

}  // namespace reckon
