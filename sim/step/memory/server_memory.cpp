#include "sim/step/memory/server_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/unit_text.h"
#include "sim/step/element_sizes.h"
#include "sim/step/servers/placement.h"

namespace reckon {
namespace {

/// The pool whose machines hold the variables; of several the one with the least memory.
const PlannedPool& server_pool(const Plan& plan, const ParameterServers& servers) {
  const PlannedPool* least = nullptr;
  for (const PlannedPool& pool : plan.pools) {
    if (servers.count == 0 || servers.colocated || pool.role != Role::parameter_server) continue;
    if (!least || pool.machine.memory.value < least->machine.memory.value) least = &pool;
  }
  return least ? *least : *computing_pools(plan).front();
}

/// The fewest servers, above those that there are, of which each holds its part; 0: no number does.
int fewest_servers(const Plan& plan, const PlannedWorkload& job) {
  constexpr int kMost = 16'384;
  const ServerShards rule = job.strategy.servers->shards;
  int too_few = std::max(1, job.strategy.servers->count), enough = too_few;
  while (enough < kMost && !server_memory(plan, job, enough).fits()) enough *= 2;
  if (!server_memory(plan, job, enough).fits()) return 0;
  // Greedy placement is not quite monotone in the number of servers; equal parts are.
  while (enough - too_few > 1 && rule == ServerShards::even) {
    const int middle = too_few + (enough - too_few) / 2;
    (server_memory(plan, job, middle).fits() ? enough : too_few) = middle;
  }
  if (rule == ServerShards::even) return enough;
  for (int n = too_few + 1; n < enough; ++n)
    if (server_memory(plan, job, n).fits()) return n;
  return enough;
}

}  // namespace

ServerMemory server_memory(const Plan& plan, const PlannedWorkload& job, int servers) {
  RECKON_CHECK(job.strategy.servers.has_value());
  const HeldVariables held = variables_held(job, std::max(1, servers));
  const ElementSizes size = element_sizes(job);
  ServerMemory m;
  m.available = server_pool(plan, *job.strategy.servers).machine.memory.value;
  m.largest_piece = held.largest_piece;
  for (std::size_t k = 0; k < held.by_server.size(); ++k) {
    if (held.by_server[k] + held.buffered[k] < m.variables + m.gradients) continue;
    m.variables = held.by_server[k];
    m.gradients = held.buffered[k];
  }
  m.optimizer = (m.variables / size.weight) * size.optimizer;
  return m;
}

std::optional<Diagnostic> check_server_memory(const Plan& plan, const PlannedWorkload& job,
                                              const Places& places) {
  if (!job.strategy.servers) return std::nullopt;
  const ParameterServers& servers = *job.strategy.servers;
  const ServerMemory m = server_memory(plan, job, servers.count);
  if (m.fits()) return std::nullopt;
  const std::string& machine = server_pool(plan, servers).machine.name;
  Diagnostic d;
  d.at = places.find("workload.strategy.parameter_servers");
  d.what =
      fmt::format("{} needs {} of memory on the fullest of {} parameter server{}, and a {} has {}",
                  job.model.name(), format_bytes(m.required()), std::max(1, servers.count),
                  servers.count > 1 ? "s" : "", machine, format_bytes(m.available));
  d.hint = fmt::format("variables {}, optimizer state {}, gradients {}", format_bytes(m.variables),
                       format_bytes(m.optimizer), format_bytes(m.gradients));
  const int enough = fewest_servers(plan, job);
  if (enough > 0)
    d.hint +=
        fmt::format("\n{} servers of {} hold it: parameter_servers: {}", enough, machine, enough);
  else
    d.hint += fmt::format(
        "\nno number of servers of {} holds it: one server has {} that is not split; shards: even, "
        "or a smaller partition, splits it",
        machine, format_bytes(m.largest_piece));
  return d;
}

}  // namespace reckon
