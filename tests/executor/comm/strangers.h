#pragma once
#include <cstdint>
#include <vector>

#include "executor/comm/rendezvous/job_listener.h"
#include "executor/comm/socket.h"

// Connections to a job's ports, of those who belong to it and of strangers.
namespace reckon::test {

inline Deadline within_seconds() { return Deadline::after(Seconds{5}); }
inline constexpr Listening kCoordinatorPort{Listening::As::coordinator, 0};

inline std::vector<Socket> connections(const HostPort& to, int count) {
  std::vector<Socket> all;
  for (int k = 0; k < count; ++k) all.push_back(connect_to(to, within_seconds()));
  return all;
}

}  // namespace reckon::test
