#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace reckon {

/// Where a server listens: an IPv4 or IPv6 address without brackets, and a port, 0: any free one.
struct ListenAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

/// "PORT" (127.0.0.1), "ADDRESS:PORT" or "[ADDRESS]:PORT"; `localhost` is 127.0.0.1. The error says
/// what is wrong and what to write.
tl::expected<ListenAddress, std::string> parse_listen_address(std::string_view text);
/// As people and URLs write it: "127.0.0.1:9090", "[::1]:9090".
std::string text(const ListenAddress& address);
/// For a URL that works on this machine: loopback where the server listens on all addresses.
ListenAddress reachable_here(ListenAddress address);

}  // namespace reckon
