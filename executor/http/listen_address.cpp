#include "executor/http/listen_address.h"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <charconv>

namespace reckon {
namespace {

constexpr std::string_view kLoopback = "127.0.0.1", kLoopback6 = "::1";

bool read_port(std::string_view text, std::uint16_t& port) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
  return !text.empty() && code == std::errc{} && end == text.data() + text.size();
}

}  // namespace

tl::expected<ListenAddress, std::string> parse_listen_address(std::string_view text) {
  ListenAddress address;
  const std::size_t colon = text.rfind(':');
  std::string_view host = colon == std::string_view::npos ? kLoopback : text.substr(0, colon);
  const std::string_view port = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  address.host = host == "localhost" ? kLoopback : host;
  boost::system::error_code error;
  const auto ip = boost::asio::ip::make_address(address.host, error);
  if (error || ip.is_v6() != bracketed || !read_port(port, address.port))
    return tl::make_unexpected(
        fmt::format("'{}' is not PORT or ADDRESS:PORT, such as 9090, 0.0.0.0:9090 or [::]:9090 "
                    "(an IP address; port 0 to 65535)",
                    text));
  return address;
}

std::string text(const ListenAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address.host, address.port)
            : fmt::format("{}:{}", address.host, address.port);
}

ListenAddress reachable_here(ListenAddress address) {
  boost::system::error_code error;
  const auto ip = boost::asio::ip::make_address(address.host, error);
  if (!error && ip.is_unspecified()) address.host = ip.is_v6() ? kLoopback6 : kLoopback;
  return address;
}

}  // namespace reckon
