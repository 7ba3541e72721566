#include "executor/comm/rendezvous/own_address.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

Expected<std::string> own_address(const WorkerIdentity& me, const Resolve& resolve) {
  if (me.address.empty()) return std::string();
  const std::vector<std::string> own = resolve(me.address);
  if (own.empty()) return me.address;  // a name that comes to be known may still be right
  const std::vector<std::string> master = resolve(me.master.host);
  const auto reached_from_elsewhere = [](const std::string& host) { return !is_loopback(host); };
  const auto is_ipv6 = [](const std::string& host) { return host.find(':') != std::string::npos; };
  auto best = std::ranges::find_if(own, [&](const std::string& host) {
    return reached_from_elsewhere(host) && !master.empty() &&
           is_ipv6(host) == is_ipv6(master.front());
  });
  if (best == own.end()) best = std::ranges::find_if(own, reached_from_elsewhere);
  if (best != own.end()) return *best;
  if (is_loopback(me.master.host)) return own.front();
  // The name of rank 0's own machine: all may be here, or the others know it by another address.
  if (std::ranges::any_of(master, [](const std::string& host) { return is_loopback(host); }))
    return std::string();
  const std::string what =
      own.front() == me.address
          ? fmt::format("--address {} is a loopback, which other machines do not reach", me.address)
          : fmt::format("--address {} is {} here, which other machines do not reach", me.address,
                        own.front());
  return tl::unexpected(Diagnostics{{.at = {.file = "--address"},
                                     .what = what,
                                     .hint = "give an address of this machine's network"}});
}

}  // namespace reckon
