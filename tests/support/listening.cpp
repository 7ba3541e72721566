#include "support/listening.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace reckon::test {
namespace {

namespace fs = std::filesystem;

struct Listener {
  std::string address;
  std::uint16_t port = 0;
  std::string inode;
};

std::vector<Listener> all_listeners() {
  constexpr const char* kListens = "0A";
  std::vector<Listener> found;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line;
    std::getline(lines, line);  // its head
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, word, inode;
      words >> number >> local >> remote >> state >> word >> word >> word >> word >> word >> inode;
      if (state != kListens) continue;
      const std::size_t colon = local.rfind(':');
      found.push_back({local.substr(0, colon),
                       std::uint16_t(std::stoul(local.substr(colon + 1), nullptr, 16)), inode});
    }
  }
  return found;
}

/// "socket:[4711]" of every descriptor.
std::set<std::string> sockets_of(const std::vector<pid_t>& processes) {
  std::set<std::string> found;
  for (const pid_t id : processes) {
    std::error_code error;
    for (fs::directory_iterator fd("/proc/" + std::to_string(id) + "/fd", error), end;
         !error && fd != end; fd.increment(error)) {
      std::error_code gone;
      const std::string name = fs::read_symlink(fd->path(), gone).string();
      if (!gone && name.starts_with("socket:[")) found.insert(name);
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> listening_addresses(std::uint16_t port) {
  constexpr std::size_t kIpv4 = 8;
  std::vector<std::string> found;
  for (const Listener& l : all_listeners())
    if (l.port == port && l.address.size() == kIpv4) found.push_back(l.address);
  return found;
}

std::vector<std::uint16_t> listeners_of(const std::vector<pid_t>& processes) {
  const std::set<std::string> ours = sockets_of(processes);
  std::set<std::uint16_t> ports;
  for (const Listener& l : all_listeners())
    if (ours.contains("socket:[" + l.inode + "]")) ports.insert(l.port);
  return {ports.begin(), ports.end()};
}

}  // namespace reckon::test
