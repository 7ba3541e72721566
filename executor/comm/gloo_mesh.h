#pragma once
#include <gloo/rendezvous/context.h>

#include <memory>

#include "executor/comm/rendezvous/rendezvous.h"

namespace reckon {

/// A Gloo connection between each two of the ranks [0, ranks); `timeout`: of its calls from then
/// on, and of the wait for the others. Gloo gives a connection to whoever comes first to a port, so
/// each side proves by HMAC-SHA256 under the job's secret that it is the rank that was meant
/// [docs/security.md]. Where one fails, by a stranger or a peer that is slow, all ranks make all
/// connections anew. Throws CommError: a rank is lost; strangers come again and again.
std::shared_ptr<gloo::rendezvous::Context> connect_gloo_mesh(Membership& membership, int ranks,
                                                             Seconds timeout);

}  // namespace reckon
