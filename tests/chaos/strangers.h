#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/socket.h"

// What a neighbour on a job's network can see.
namespace reckon::test {

/// Listens to all that is said on the loopback of an own network.
class WireTap {
 public:
  WireTap();
  explicit operator bool() const { return bool(socket_); }
  /// Takes in what was said since the last call.
  void listen();
  /// What clients have said to servers, a text each: the newest conversations.
  std::vector<std::string> said() const;

 private:
  void take(std::span<const unsigned char> packet);

  Socket socket_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::string> flows_;  // by source, destination
};

}  // namespace reckon::test
