#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "executor/train/records/run_directory.h"
#include "sim/scenario/plan.h"

// Going on with a run of this machine: whether its checkpoints are of these settings, and which
// command does it. `arguments` are the words of the user behind `reckon run`.
namespace reckon::cli {

/// False: the newest checkpoint was trained under other settings, which `accepted` does not let go,
/// or is another job's. Prints each difference and a command that goes on.
bool may_go_on(const Plan& plan, const RunDirectory& directory, bool accepted,
               std::span<const std::string> arguments);

/// Of a run that had taken its last step before: that nothing was run, and what goes further.
std::string finished_already(const RunDirectory& directory, std::int64_t steps);

/// Behind a run that has not finished: the command that goes on with it. `foreign`: a program that
/// is not ours, which knows itself what it goes on from.
std::string how_to_go_on(const Plan& plan, const RunDirectory& directory,
                         std::optional<std::int64_t> checkpoint, bool foreign,
                         std::span<const std::string> arguments);

}  // namespace reckon::cli
