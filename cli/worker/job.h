#pragma once
#include "cli/worker/options.h"

namespace reckon::worker {

/// Does this process' part of the job; the exit code (design.md). Throws what the environment
/// refuses.
int run_job(const Options& options);

}  // namespace reckon::worker
