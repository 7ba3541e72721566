#pragma once
#include <map>
#include <string>

#include "executor/train/data/source.h"
#include "executor/worker/job_options.h"
#include "sim/scenario/plan.h"

namespace reckon::worker {

/// What all processes of a start must have the same, or they would train different things, wait for
/// each other for ever, or not fit together: settings of the training and all of the strategy, of
/// workers also what decides which collectives they take part in. Where the samples lie and what a
/// process does by itself, as its threads, is each one's own.
std::map<std::string, std::string> settings_in_common(const JobOptions& options, const Plan& plan,
                                                      bool computes);

/// The same of the samples that a rank has found, wherever they lie: other ones would be trained
/// on twice, or by nobody. `validation`: nullptr: there is none.
std::map<std::string, std::string> data_in_common(const DataSource& source,
                                                  const DataSource* validation);

}  // namespace reckon::worker
