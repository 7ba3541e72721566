#pragma once
#include <string>

#include "planner/fleet/fleet.h"

// What `reckon plan` prints for several jobs.
namespace reckon {

/// Pools, which job runs where and when, what binds, and how far the replay is from the program.
std::string fleet_table(const planner::FleetAnswer& answer, int width = 100);
std::string fleet_json(const planner::FleetAnswer& answer);

/// Runs, costs and deadlines are as wanted, in the replay.
bool fleet_fits(const planner::FleetAnswer& answer);

}  // namespace reckon
