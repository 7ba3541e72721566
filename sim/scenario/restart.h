#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "sim/scenario/plan.h"

// What of a synchronous job is left when one of its nodes goes: follows from how it is laid out.
namespace reckon {

/// Workers that come and go together: those that hold one copy of the model and of its experts
/// between them (tensor x pipeline x context x expert ranks). 1 where a worker holds a whole copy
/// or more, and where ZeRO shards over all ranks, whatever their number.
int workers_of_a_copy(const PlannedWorkload& job);

/// Does each data-parallel copy hold all of the state (parameters and optimizer)? Not where ZeRO
/// shards any of it over the copies.
bool copies_hold_all(const PlannedWorkload& job);

/// Are there copies on other nodes when a node with so many workers goes?
constexpr bool a_copy_is_left(int workers, int workers_of_a_copy, int workers_per_node) {
  const int gone = (workers_per_node + workers_of_a_copy - 1) / workers_of_a_copy;
  return workers / workers_of_a_copy > gone;
}

/// "full", "in_place", "elastic", "elastic 12" (at least so many nodes), "warm_spare" (one),
/// "warm_spare 2". nullopt: none of these.
std::optional<RestartSpec> parse_restart(std::string_view text);
std::string restart_text(const RestartSpec& restart);

}  // namespace reckon
