#include "emulated/emulated_cluster.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

namespace reckon {

namespace {
void run(const std::string& command) {
  if (std::system((command + " 2>/dev/null").c_str()) != 0)
    throw std::runtime_error("failed: " + command);
}
}  // namespace

std::string EmulatedCluster::why_not() {
  if (geteuid() != 0) return "network namespaces need root";
  for (const char* tool : {"ip", "tc"})
    if (std::system(fmt::format("command -v {} >/dev/null", tool).c_str()) != 0)
      return fmt::format("there is no '{}' (iproute2)", tool);
  const std::string name = fmt::format("reckon{}t", getpid());
  const bool allowed = std::system(fmt::format("ip netns add {} 2>/dev/null", name).c_str()) == 0;
  if (!allowed) return "this machine allows no network namespaces";
  (void)!std::system(fmt::format("ip netns del {}", name).c_str());
  return "";
}

std::string EmulatedCluster::name_of(int host) const { return fmt::format("{}h{}", prefix_, host); }
std::string EmulatedCluster::address(int host) { return fmt::format("10.77.0.{}", host + 1); }

EmulatedCluster::EmulatedCluster(const std::vector<BytesPerSecond>& links)
    : prefix_(fmt::format("reckon{}", getpid())), hosts_(int(links.size())) {
  const std::string bridge = prefix_ + "b";
  run(fmt::format("ip netns add {}", bridge));
  run(fmt::format("ip -n {} link add br0 type bridge", bridge));
  run(fmt::format("ip -n {} link set br0 up", bridge));
  for (int h = 0; h < hosts_; ++h) {
    const std::string ns = name_of(h), port = fmt::format("p{}", h);
    run(fmt::format("ip netns add {}", ns));
    run(fmt::format("ip -n {} link add {} type veth peer name eth0 netns {}", bridge, port, ns));
    run(fmt::format("ip -n {} link set {} master br0 up", bridge, port));
    run(fmt::format("ip -n {} addr add {}/24 dev eth0", ns, address(h)));
    run(fmt::format("ip -n {} link set eth0 up", ns));
    run(fmt::format("ip -n {} link set lo up", ns));
    // The queue holds 40 ms; the bucket a few packets.
    const std::string shape =
        fmt::format("root tbf rate {:.0f}bit burst 64kb latency 40ms", links[std::size_t(h)].v * 8);
    run(fmt::format("tc -n {} qdisc add dev eth0 {}", ns, shape));
    run(fmt::format("tc -n {} qdisc add dev {} {}", bridge, port, shape));
  }
}

EmulatedCluster::~EmulatedCluster() {
  for (int h = 0; h < hosts_; ++h)
    (void)!std::system(fmt::format("ip netns del {} 2>/dev/null", name_of(h)).c_str());
  (void)!std::system(fmt::format("ip netns del {}b 2>/dev/null", prefix_).c_str());
}

void EmulatedCluster::enter(int host) const {
  const std::string path = "/run/netns/" + name_of(host);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
    throw std::runtime_error("cannot enter the namespace " + path);
  close(fd);
}

}  // namespace reckon
