#pragma once
#include <filesystem>
#include <string>

#include "planner/planner.h"

namespace reckon::planner {

/// A plan as a file: the base as one document with the candidate put over it, without `plan:`, with
/// the replications and the seed that its forecast was made with and a `planned:` block. What
/// `reckon simulate` makes of it is that forecast, digit for digit. Relative paths in it are
/// rewritten to be relative to `directory`, where the file will stand.
/// `resolved` is the plan in full: what a node costs, from which source and date, opens the file.
Expected<std::string> plan_file(const Question& question, const RankedPlan& plan,
                                const Plan& resolved, std::string_view reckon_version,
                                const std::filesystem::path& directory);

}  // namespace reckon::planner
