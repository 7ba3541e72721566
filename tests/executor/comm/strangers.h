#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
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

/// By another address of this machine than others have.
inline Socket connect_from(const std::string& host, const HostPort& to) {
  Socket socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto place = [](const HostPort& p) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(p.port);
    inet_pton(AF_INET, p.host.c_str(), &address.sin_addr);
    return address;
  };
  const sockaddr_in own = place({host, 0}), other = place(to);
  if (bind(socket.fd(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      connect(socket.fd(), reinterpret_cast<const sockaddr*>(&other), sizeof other) != 0)
    throw SocketError(SocketError::Kind::other, "cannot connect from " + host);
  return socket;
}

}  // namespace reckon::test
