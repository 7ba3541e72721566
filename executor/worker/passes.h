#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "executor/data/watch.h"
#include "executor/train/data/source.h"
#include "executor/worker/job.h"
#include "executor/worker/job_options.h"

namespace reckon::worker {

/// What a job reads.
struct JobData {
  std::unique_ptr<DataSource> training;
  std::unique_ptr<DataSource> validation;  // nullptr: the plan makes no evaluation passes
  /// While it is set a store that does not answer is not asked again (ReadingStopped).
  std::shared_ptr<std::atomic<bool>> reading_ends = std::make_shared<std::atomic<bool>>(false);
};
/// Validation is read whole, not cut at random; folders of classes are numbered by the training
/// set's names. Throws DataError, with what is wrong with either; ReadingStopped; what a store
/// refuses.
JobData open_job_data(const JobOptions& options, const Job& job, const DataWatch& watch);

/// What the user may not have meant: data of another size than the plan says, or evaluation passes
/// over others, and what the data themselves have to say.
std::vector<std::string> warnings_of(const JobOptions& options, const Job& job,
                                     const JobData& data);

}  // namespace reckon::worker
