#pragma once
#include "planner/fleet/fleet.h"

// From a scenario with several jobs to the question that the program is asked, and from its answer
// to scenarios that are replayed.
namespace reckon::planner {

/// What all steps read.
struct FleetSetting {
  const Base& base;
  const ScenarioFile& file;  // the base as read
  const Catalog& catalog;
  const NetworkModel& network;
  std::uint64_t seed = 1;
  int threads = 0;
};

/// Mistakes of the question that a plan of one job has not: periods, deadlines, services.
Diagnostics check_fleet(const ScenarioFile& file, const Catalog& catalog);

/// Pools and options of every job, each option forecast alone. Fills fleet, considered,
/// option_replications and without_plan.
Expected<void> make_fleet(const FleetSetting& setting, FleetAnswer& answer);

/// The scenario of a pool with the jobs that run on it; `runs` are indices of jobs, `number` is
/// what the answer calls the pool.
std::string pool_scenario(const FleetAnswer& answer, const FleetChoice& choice, std::size_t pool,
                          const std::vector<std::size_t>& runs, std::size_t number);

/// Every pool of the choice by `simulate`.
Expected<Replay> replay(const FleetSetting& setting, const FleetAnswer& answer,
                        const FleetChoice& choice, int replications);

}  // namespace reckon::planner
