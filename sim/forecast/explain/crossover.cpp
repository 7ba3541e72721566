#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/forecast/explain/explain.h"

// All-reduce against parameter servers on the same workers, by their number.
namespace reckon {
namespace {

constexpr int kMostWorkers = 64;
constexpr int kWorkersPerServer = 4;

/// Nodes for parameter servers: the plan's, else the workers' machines without accelerators.
void ensure_servers(Plan& plan) {
  if (plan.pool_with(Role::parameter_server)) return;
  PlannedPool servers = *computing_pools(plan).back();
  servers.id = PoolId{std::uint32_t(plan.pools.size())};
  servers.name = "servers";
  servers.role = Role::parameter_server;
  servers.accelerator.reset();
  servers.accelerators_per_node = 0;
  plan.pools.push_back(std::move(servers));
}

SamplesPerSecond throughput(const Plan& plan, const NetworkModel& network) {
  return estimate_step(plan, plan.only_job(), network).samples_per_second;
}

}  // namespace

std::optional<Crossover> crossover_of(const Plan& plan, const NetworkModel& network) {
  const PlannedStrategy& now = plan.only_job().strategy;
  if (!traits_of(now.kind).on_machines || cuts_the_model(now)) return std::nullopt;
  Plan base = plan;
  ensure_servers(base);
  ParameterServers served = now.servers.value_or(ParameterServers{});
  served.backup_workers = 0;
  served.synchronous = true;  // as all-reduce is: like is compared with like
  const int fixed = std::max(1, now.server_count());
  const auto all_reduce = [&](int workers) {
    Plan p = with_workers(base, workers);
    p.only_job().strategy.kind = StrategyKind::multi_worker_mirrored;
    p.only_job().strategy.servers.reset();
    return throughput(p, network);
  };
  const auto with_servers = [&](int workers, int servers) {
    Plan p = with_workers(base, workers);
    p.only_job().strategy.kind = StrategyKind::parameter_server;
    p.only_job().strategy.servers = served;
    p.only_job().strategy.servers->count = servers;
    return throughput(p, network);
  };

  Crossover c;
  c.server_machine = base.pool_with(Role::parameter_server)->machine.name;
  c.strategies = {"all-reduce", fmt::format("{} server{}", fixed, fixed == 1 ? "" : "s"),
                  fmt::format("server for {}", kWorkersPerServer), "server each"};
  c.one_worker = all_reduce(1);
  std::set<int> counts{now.workers};
  for (int w = 2; w <= std::max(kMostWorkers, now.workers); w *= 2) counts.insert(w);
  counts.erase(1);
  for (const int w : counts) {
    CrossoverRow row{w, {}, 0};
    row.throughput = {all_reduce(w), with_servers(w, fixed),
                      with_servers(w, (w + kWorkersPerServer - 1) / kWorkersPerServer),
                      with_servers(w, w)};
    row.best = std::size_t(std::max_element(row.throughput.begin(), row.throughput.end()) -
                           row.throughput.begin());
    c.rows.push_back(std::move(row));
  }
  return c;
}

}  // namespace reckon
