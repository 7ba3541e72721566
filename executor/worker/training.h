#pragma once
#include "executor/comm/rendezvous/worker_identity.h"
#include "executor/worker/job.h"
#include "executor/worker/job_options.h"

namespace reckon::worker {

/// This process trains, as one of the job's ranks; under a watcher that gives orders
/// (executor/train/records/orders.h) in all starts of the job that it lives to see. The exit code.
/// Throws as run_job().
int train(const JobOptions& options, const Job& loaded, const WorkerIdentity& me);

}  // namespace reckon::worker
