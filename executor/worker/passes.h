#pragma once
#include <memory>
#include <string>

#include "executor/train/data/source.h"
#include "executor/worker/job.h"
#include "executor/worker/job_options.h"
#include "sim/scenario/planned/workload.h"

namespace reckon::worker {

/// Where the length is said in epochs and the data has other samples than the plan counts an epoch
/// by: both, and what to do. "": it is as planned. `where`: the data's location.
std::string why_other_epochs(const PlannedWorkload& job, const DataSource& source,
                             const std::string& where);

/// What evaluation passes read: images whole, not cut at random. nullptr: the plan makes none.
/// Throws DataError.
std::unique_ptr<DataSource> open_validation(const JobOptions& options, const Job& job);
/// Where evaluation passes are others than the plan or the options say: how. "": they are not.
std::string why_other_validation(const JobOptions& options, const Job& job,
                                 const DataSource* validation);

}  // namespace reckon::worker
