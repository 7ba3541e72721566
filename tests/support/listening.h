#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

// Who listens on this machine [proc(5), /proc/net/tcp].
namespace reckon::test {

/// The IPv4 addresses that sockets of this machine listen on at a port, as the kernel writes them:
/// "0100007F" is 127.0.0.1, "00000000" all of them.
std::vector<std::string> listening_addresses(std::uint16_t port);

/// TCP ports at which these processes listen.
std::vector<std::uint16_t> listeners_of(const std::vector<pid_t>& processes);

}  // namespace reckon::test
