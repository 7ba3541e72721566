#pragma once
#include <map>
#include <string>

#include "executor/worker/job_options.h"
#include "sim/scenario/plan.h"

namespace reckon::worker {

/// What all processes of a start must have the same, or they would train different things, wait for
/// each other for ever, or not fit together: settings of the training and all of the strategy, of
/// workers also what decides which collectives they take part in. Where the samples lie and what a
/// process does by itself, as its threads, is each one's own.
std::map<std::string, std::string> settings_in_common(const JobOptions& options, const Plan& plan,
                                                      bool computes);

}  // namespace reckon::worker
