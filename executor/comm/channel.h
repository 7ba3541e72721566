#pragma once
#include "executor/comm/wire.h"

namespace reckon {

/// Connects, and both sides prove that they know the secret. Where the other side closes the
/// connection before that it is tried again, a few times. Throws SocketError; HandshakeError where
/// the two are not processes of one job; WireError where the job's name is too long.
Channel connect_to_process(const HostPort& address, const JobSecret& secret, const Listening& other,
                           const Connecting& self, Deadline deadline);

}  // namespace reckon
