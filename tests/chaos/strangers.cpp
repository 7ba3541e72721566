#include "chaos/strangers.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace reckon::test {

WireTap::WireTap()
    : socket_(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_IP))) {}

void WireTap::listen() {
  std::array<unsigned char, 65536 + 256> packet{};
  while (socket_) {
    sockaddr_ll from{};
    socklen_t length = sizeof from;
    const ssize_t n = ::recvfrom(socket_.fd(), packet.data(), packet.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &length);
    if (n <= 0) return;
    // Each packet of the loopback is seen twice: as it leaves, and as it comes.
    if (from.sll_pkttype != PACKET_OUTGOING) take(std::span(packet).first(std::size_t(n)));
  }
}

void WireTap::take(std::span<const unsigned char> packet) {
  constexpr std::size_t kMostFlows = 64, kMostBytes = 1 << 16;
  iphdr ip{};
  if (packet.size() < sizeof ip) return;
  std::memcpy(&ip, packet.data(), sizeof ip);
  const std::size_t ip_size = 4 * std::size_t(ip.ihl);
  tcphdr tcp{};
  if (ip.protocol != IPPROTO_TCP || packet.size() < ip_size + sizeof tcp) return;
  std::memcpy(&tcp, packet.data() + ip_size, sizeof tcp);
  const std::pair key{ntohs(tcp.source), ntohs(tcp.dest)};
  // Who says hello is the client.
  if (tcp.syn != 0 && tcp.ack == 0) {
    if (flows_.size() >= kMostFlows) flows_.erase(flows_.begin());
    flows_[key].clear();
  }
  const auto flow = flows_.find(key);
  const std::size_t head = ip_size + 4 * std::size_t(tcp.doff);
  if (flow == flows_.end() || head >= packet.size() || flow->second.size() >= kMostBytes) return;
  flow->second.append(reinterpret_cast<const char*>(packet.data()) + head, packet.size() - head);
}

std::vector<std::string> WireTap::said() const {
  std::vector<std::string> all;
  for (const auto& [ports, text] : flows_)
    if (!text.empty()) all.push_back(text);
  return all;
}

}  // namespace reckon::test
