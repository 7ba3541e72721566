#pragma once
#include "executor/comm/parameter_server/server/state.h"
#include "executor/comm/rendezvous/rendezvous.h"

namespace reckon {

/// One parameter server process: serves the workers of `job` until all have left; a thread for
/// each. `server` counts from 0; `listener` is at the port that the member told the others.
/// `timeout`: longest wait for workers to come, for the gradients of a step, and for a worker to
/// take data. Throws CommError when a worker is lost, hangs or breaks the protocol (the other
/// workers are told why); strangers, who do not know the job's secret, are turned away without
/// effect.
ServerReport run_parameter_server(Membership& membership, const std::string& job_name, int server,
                                  const ServerJob& job, Socket listener, Seconds timeout);

}  // namespace reckon
