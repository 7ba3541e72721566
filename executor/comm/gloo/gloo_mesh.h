#pragma once
#include <gloo/rendezvous/context.h>

#include <memory>
#include <span>
#include <string>

#include "executor/comm/gloo/gloo_sends.h"
#include "executor/comm/rendezvous/rendezvous.h"

namespace reckon {

/// A Gloo connection between each two of `ranks`, members in ascending order, whose k-th is the
/// context's rank k. `name`: these ranks' alone, and another one for each mesh; `timeout`: of its
/// calls from then on, and of the wait for the others. Gloo gives a connection to whoever comes
/// first to a port, so each side proves by HMAC-SHA256 under the job's secret that it is the rank
/// that was meant [docs/security.md]. Where one fails, by a stranger or a peer that is slow, all
/// ranks make all connections anew, until the deadline of the rendezvous. Its sends are waited for
/// by `sends`. Throws CommError: a rank is lost; strangers come again and again; two ranks do not
/// reach each other.
std::shared_ptr<gloo::rendezvous::Context> connect_gloo_mesh(
    Membership& membership, std::span<const int> ranks, const std::string& name, Seconds timeout,
    const std::shared_ptr<GlooSends>& sends);

}  // namespace reckon
