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

/// Workers that an elastic job trains on, of those that are there: whole copies, at least `least`
/// workers. 0: they are too few.
constexpr int usable_workers(int there, int workers_of_a_copy, int least) {
  const int whole = there / workers_of_a_copy * workers_of_a_copy;
  return whole > 0 && whole >= least ? whole : 0;
}

/// Workers that stand by on the spare nodes of a warm_spare: all that a node holds each. 0: it has
/// none.
int spare_workers(const Plan& plan);

/// Passes of one copy in a step of an elastic job with a fixed global batch, which is `all` passes:
/// the first copies have one more where they do not come out even.
constexpr std::int64_t passes_of_copy(std::int64_t all, int copies, int copy) {
  return all / copies + (copy < all % copies ? 1 : 0);
}

/// The elastic job with fewer workers, each with its batch. Its global batch is what the slowest
/// copy's passes make of it: of a fixed one that is the job's own, rounded up to whole passes of
/// all.
PlannedWorkload with_fewer_workers(PlannedWorkload job, int workers);

/// "full", "in_place", "elastic", "elastic 12" (at least so many nodes), "warm_spare" (one),
/// "warm_spare 2". nullopt: none of these.
std::optional<RestartSpec> parse_restart(std::string_view text);
std::string restart_text(const RestartSpec& restart);

}  // namespace reckon
