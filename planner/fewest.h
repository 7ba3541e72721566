#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/planner.h"

// `reckon plan --fewest`: will it fit, and how many accelerators at least?
namespace reckon::planner {

/// Of one kind of accelerator, on whatever machines hold it.
struct FewestRow {
  Provider provider;
  std::string accelerator;  // "": CPUs, or machines of your own
  /// With the fewest accelerators that hold the training in memory; of equals the shortest step.
  std::optional<RankedPlan> fits;  // not forecast
  /// With the fewest whose forecast meets all limits.
  std::optional<RankedPlan> meets;
  std::string why_not;  // where one of the two is missing
};

/// Numbers of parameter servers for the scenario's own workers.
struct FewestServers {
  /// With which the servers are no longer what a step waits for (Bottleneck); nullopt: up to
  /// `tried` they always are.
  std::optional<int> enough;
  /// With which one more shortens the step by less than 1 %.
  std::optional<int> no_gain;
  int tried = 0;
  std::vector<Seconds> steps;  // by number of servers - 1
};

struct Fewest {
  std::string scenario;
  std::optional<Limit> deadline, budget;
  std::uint64_t seed = 1;
  int replications = 0;
  std::vector<FewestRow> rows;           // fewest accelerators first, those that do not fit last
  std::optional<FewestServers> servers;  // of a scenario with parameter servers
  bool meets_all() const;                // some row does
};

/// Numbers of nodes are the question's. A number of accelerators counts as too few where a bound
/// proves it, or where 32 replications of the three layouts that look fastest (with a deadline and
/// a budget also of the three that look cheapest) miss a limit by more than a quarter; nearer ones
/// are forecast with all replications. Errors as in plan().
Expected<Fewest> fewest(const Question& question, const Catalog& catalog,
                        const NetworkModel& network, const PlannerOptions& options = {});

/// The plan's strategy must be parameter_server with servers of their own.
FewestServers fewest_servers(const Plan& plan, const NetworkModel& network);

}  // namespace reckon::planner
