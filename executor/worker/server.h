#pragma once
#include "executor/comm/parameter_server/parameter_server.h"
#include "executor/comm/rendezvous/worker_identity.h"
#include "executor/worker/job_options.h"
#include "sim/scenario/plan.h"

// A job with parameter servers, as its workers and its servers see it.
namespace reckon::worker {

constexpr Seconds kServerTimeout{120};  // longest wait for a worker or a server

ServerJob server_job(const JobOptions& options, const PlannedWorkload& job,
                     const WorkerIdentity& me);

/// This process is one of them, until the workers are done. Its exit code.
int serve(const JobOptions& options, const Plan& plan, const WorkerIdentity& me);

}  // namespace reckon::worker
