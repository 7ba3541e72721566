#pragma once
#include <utility>

#include "executor/comm/wire.h"

namespace reckon {

/// Whoever listens closes each connection before it has proved that it knows the secret.
struct ClosedUnproved : SocketError {
  explicit ClosedUnproved(const std::string& what) : SocketError(Kind::closed, what) {}
};

/// Connects, and both sides prove that they know the secret. Where the other side closes the
/// connection before that it is tried again, a few times; then ClosedUnproved. Throws SocketError;
/// HandshakeError where the two are not processes of one job; WireError where the job's name is too
/// long.
Channel connect_to_process(const HostPort& address, const JobSecret& secret, const Listening& other,
                           const Connecting& self, Deadline deadline);

/// The two ends of a channel within this process.
std::pair<Channel, Channel> channel_pair();

}  // namespace reckon
