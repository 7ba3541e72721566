#pragma once
#include <optional>

#include "executor/comm/rendezvous/worker_identity.h"
#include "executor/worker/job.h"
#include "executor/worker/job_options.h"
#include "executor/worker/passes.h"

namespace reckon::worker {

/// Opens what the job reads, and warns on rank 0 of what is otherwise than planned. Meanwhile a
/// watcher hears that it gets on, and a request to stop ends it: nullopt. Throws DataError; what a
/// store refuses.
std::optional<JobData> open_data_of(const JobOptions& options, const Job& job,
                                    const WorkerIdentity& me);

}  // namespace reckon::worker
