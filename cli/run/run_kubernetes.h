#pragma once
#include <span>
#include <string>

#include "cli/run/run_options.h"

namespace reckon::cli {

/// `reckon run --on kubernetes`: the plan as pods of a cluster, watched from here; the exit code.
/// `arguments`: the user's words, of which `options` were read.
int run_in_cluster(const RunOptions& options, std::span<const std::string> arguments);

}  // namespace reckon::cli
