#pragma once
#include <memory>
#include <string>

#include "executor/comm/gradient_exchange.h"
#include "executor/comm/parameter_server/server/keys.h"
#include "executor/comm/rendezvous/rendezvous.h"

namespace reckon {

/// A worker's exchange with the parameter servers of `job` (members workers ... workers + servers -
/// 1). A group of layers is pushed as soon as its gradients are ready, each server's part to that
/// server; finish_step asks for the new values and waits for them. Synchronous without backup
/// workers: the parameters are the bits of an all-reduce of the same world size, for the servers
/// add in the order of the ranks. With backup workers or asynchronous: they depend on timing. The
/// gradient is not clipped: no server sees its norm.
std::unique_ptr<GradientExchange> make_ps_exchange(Membership& membership,
                                                   const std::string& job_name, ServerJob job,
                                                   Seconds timeout);

}  // namespace reckon
