#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "executor/launch/run_tracker.h"
#include "executor/train/records/run_directory.h"
#include "sim/scenario/plan.h"

// Going on with a run of this machine: whether its checkpoints are of these settings, and which
// command does it. `arguments` are the words of the user behind `reckon run`.
namespace reckon::cli {

/// False: the newest checkpoint was trained under other settings, which `accepted` does not let go,
/// or is another job's. Prints each difference and a command that goes on.
bool may_go_on(const Plan& plan, const RunDirectory& directory, bool accepted,
               std::span<const std::string> arguments);

/// The user's command with these words in place of --resume and --accept-changes; whoever types it
/// gets what it says, whatever is in the names.
std::string command_with(std::span<const std::string> arguments,
                         std::span<const std::string> words);

/// A budget that does for the run with 95 %, in two digits: "33USD". Its prices are known.
std::string budget_for(const RunEnd& end);

/// Of a run that had taken its last step before: that nothing was run, and what goes further.
std::string finished_already(const RunDirectory& directory, std::int64_t steps);

/// Behind a run that has not finished: the command that goes on with it, behind one that its budget
/// ended with a budget that does for the rest. `foreign`: a program that is not ours, which knows
/// itself what it goes on from.
std::string how_to_go_on(const Plan& plan, const RunDirectory& directory, const RunEnd& end,
                         bool foreign, std::span<const std::string> arguments);

}  // namespace reckon::cli
