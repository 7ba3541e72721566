#include "executor/comm/rendezvous/member_addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

bool connects_to_others(const Member& member) { return computes(member.role); }

bool by_ipv4(const Member& member) {
  in_addr address{};
  return connects_to_others(member) &&
         inet_pton(AF_INET, member.address.host.c_str(), &address) == 1;
}
bool by_ipv6(const Member& member) {
  return connects_to_others(member) && member.address.host.find(':') != std::string::npos;
}

}  // namespace

void make_reachable(std::vector<Member>& members, const std::string& nonlocal) {
  for (Member& member : members)
    if (is_loopback(member.address.host) && !nonlocal.empty()) member.address.host = nonlocal;
  if (!std::ranges::any_of(members, by_ipv4)) return;
  for (Member& member : members)
    if (by_ipv6(member) && is_loopback(member.address.host)) member.address.host = "127.0.0.1";
}

std::string why_families_differ(const std::vector<Member>& members) {
  const auto four = std::ranges::find_if(members, by_ipv4);
  const auto six = std::ranges::find_if(members, by_ipv6);
  if (four == members.end() || six == members.end()) return "";
  return fmt::format(
      "rank {} comes by IPv6 ({}), rank {} by IPv4 ({}), so they cannot connect to each other: "
      "give --master (MASTER_ADDR) an address in place of a name, the same for all ranks",
      six->rank, six->address.host, four->rank, four->address.host);
}

}  // namespace reckon
