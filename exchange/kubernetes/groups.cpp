#include <algorithm>

#include "exchange/kubernetes/documents.h"
#include "sim/scenario/restart.h"

// Which kinds of pods a job has, and what each asks for.
namespace reckon::kubernetes {
namespace {

/// TPU v2 and v3 as resources of pods, in cores of a slice as a whole; "": not of that cluster. GKE
/// has TPUs as nodes from 1.26 on, which are asked for by chips of a host.
std::string tpu_cores(const Job& job, const Accelerator& accelerator) {
  if (job.options->minor >= kTpuNodes) return "";
  if (accelerator.name == "TPU-v2") return job.term("resources.tpu_v2_cores");
  return accelerator.name == "TPU-v3" ? job.term("resources.tpu_v3_cores") : "";
}

void ask_for_devices(PodGroup& group, const Job& job, int per_pod) {
  const PlannedPool& pool = *group.pool;
  if (!pool.accelerator || per_pod == 0) return;
  if (pool.accelerator->kind == AcceleratorKind::gpu) {
    group.devices = per_pod;
    group.resource =
        job.term(pool.accelerator->vendor == "AMD" ? "resources.amd_gpu" : "resources.gpu");
    return;
  }
  const std::string legacy = tpu_cores(job, *pool.accelerator);
  const int chips = pool.slice ? pool.slice->chips : per_pod;
  if (!legacy.empty()) {
    group.resource = legacy;
    group.tpu_by_cores = true;
    group.devices = chips * pool.accelerator->cores_per_device;
    return;
  }
  group.resource = job.term("resources.tpu");
  group.devices = pool.slice ? std::max(1, chips / std::max(1, pool.slice->hosts)) : per_pod;
  if (pool.slice) group.count = pool.slice->hosts;
}

}  // namespace

std::vector<PodGroup> groups_of(const Job& job) {
  const Plan& plan = *job.plan;
  const PlannedStrategy& s = plan.only_job().strategy;
  const int each = s.accelerators_per_worker;
  std::vector<PodGroup> groups;
  int left = s.workers;
  const auto pools = computing_pools(plan);
  for (std::size_t k = 0; k < pools.size() && left > 0; ++k) {
    const PlannedPool& pool = *pools[k];
    PodGroup group;
    group.role = k + 1 < pools.size() ? Role::chief : Role::worker;
    group.pool = &pool;
    group.per_node = each > 0 ? std::max(1, pool.accelerators_per_node / each) : 1;
    group.count = k + 1 < pools.size() ? std::min(left, pool.nodes_max * group.per_node) : left;
    group.first_rank = s.workers - left;
    left -= group.count;
    ask_for_devices(group, job, each);
    groups.push_back(group);
  }
  if (s.server_count() > 0) {
    PodGroup servers;
    servers.role = Role::parameter_server;
    servers.pool = plan.pool_with(Role::parameter_server);
    servers.count = s.server_count();
    if (servers.pool == nullptr) {  // beside the workers, on their nodes
      PodGroup& host = groups.back();
      const int nodes = (host.count + host.per_node - 1) / host.per_node;
      host.per_node += (servers.count + nodes - 1) / nodes;
      servers.pool = host.pool;
      servers.per_node = host.per_node;
    } else {
      const int nodes = std::max(1, servers.pool->nodes_max);
      servers.per_node = (servers.count + nodes - 1) / nodes;
    }
    groups.push_back(servers);
  }
  if (const int spares = job.options->standing ? spare_workers(plan) : 0; spares > 0) {
    PodGroup beside = groups.back();  // a standing job has no servers
    beside.count = spares;
    beside.stands_by = true;
    groups.push_back(beside);
  }
  int rank = 0;
  for (PodGroup& group : groups) {
    group.first_rank = rank;
    rank += group.count;
  }
  return groups;
}

}  // namespace reckon::kubernetes
