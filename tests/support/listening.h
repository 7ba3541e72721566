#pragma once
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace reckon::test {

/// The IPv4 addresses that sockets of this machine listen on at a port, as the kernel writes them:
/// "0100007F" is 127.0.0.1, "00000000" all of them [proc(5), /proc/net/tcp].
inline std::vector<std::string> listening_addresses(std::uint16_t port) {
  std::ifstream table("/proc/net/tcp");
  std::vector<std::string> found;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state;
    words >> number >> local >> remote >> state;
    const std::size_t colon = local.find(':');
    if (state == "0A" && std::stoul(local.substr(colon + 1), nullptr, 16) == port)
      found.push_back(local.substr(0, colon));
  }
  return found;
}

}  // namespace reckon::test
