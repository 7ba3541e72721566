#include "chaos/own_namespaces.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "executor/comm/socket.h"

namespace reckon::test {
namespace {

std::string reason(const char* call) { return std::string(call) + ": " + std::strerror(errno); }

/// Who is not root becomes root of a user namespace of its own, where it may have the others.
void enter_user_namespace() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (user == 0 || ::unshare(CLONE_NEWUSER) != 0) return;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
}

OwnNamespaces enter() {
  enter_user_namespace();
  OwnNamespaces own;
  if (::unshare(CLONE_NEWNET) != 0) own.no_network = reason("unshare(CLONE_NEWNET)");
  if (own.no_network.empty()) set_loopback(true);
  if (::unshare(CLONE_NEWNS) != 0)
    own.no_mounts = reason("unshare(CLONE_NEWNS)");
  else if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    own.no_mounts = reason("mount(MS_PRIVATE)");
  return own;
}

}  // namespace

const OwnNamespaces& enter_own_namespaces() {
  static const OwnNamespaces own = enter();
  return own;
}

void set_loopback(bool up) {
  const Socket any{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  bool done = any && ::ioctl(any.fd(), SIOCGIFFLAGS, &request) == 0;
  const int flags = up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP;
  request.ifr_flags = static_cast<short>(flags);
  done = done && ::ioctl(any.fd(), SIOCSIFFLAGS, &request) == 0;
  if (!done) throw std::runtime_error(reason("the loopback cannot be switched"));
}

SmallDisk::SmallDisk(std::filesystem::path place, std::size_t bytes) : place_(std::move(place)) {
  std::filesystem::create_directories(place_);
  const std::string options = "size=" + std::to_string(bytes);
  if (::mount("none", place_.c_str(), "tmpfs", 0, options.c_str()) != 0)
    throw std::runtime_error(reason("a small disk cannot be mounted"));
}
SmallDisk::~SmallDisk() { ::umount2(place_.c_str(), MNT_DETACH); }

}  // namespace reckon::test
