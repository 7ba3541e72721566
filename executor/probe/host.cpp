#include "executor/probe/host.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "executor/train/products/matrix.h"
#include "executor/train/records/run_directory.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<double> number_in(const std::string& text) {
  const auto value = parse_number(text);
  return value ? std::optional(*value) : std::nullopt;
}

/// The value behind `key` in lines of "key value".
std::optional<double> value_of(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string word, value; in >> word >> value;)
    if (word == key) return number_in(value);
  return std::nullopt;
}

struct Group {
  int version = 2;
  fs::path mount, directory;
};

/// Lines are "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1).
std::optional<Group> cpu_group(const ControlGroups& groups) {
  std::istringstream lines(groups.membership);
  std::optional<Group> found;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const fs::path path = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.find(",cpu,") != std::string::npos) {
      const fs::path mount = groups.root / "cpu";
      return Group{1, mount, mount / path};
    }
    if (controllers == ",,") found = Group{2, groups.root, groups.root / path};
  }
  return found;
}

/// Of a container's own view the path may name a group outside it: then its root is meant.
fs::path existing(const Group& group) {
  std::error_code error;
  return fs::is_directory(group.directory, error) ? group.directory : group.mount;
}

std::optional<double> quota_of(const fs::path& group, int version) {
  std::string quota, period;
  if (version == 2) {
    std::istringstream words(first_line(group / "cpu.max"));
    words >> quota >> period;
  } else {
    quota = first_line(group / "cpu.cfs_quota_us");
    period = first_line(group / "cpu.cfs_period_us");
  }
  const auto allowed = number_in(quota), each = number_in(period);
  if (!allowed || !each || *allowed <= 0 || *each <= 0) return std::nullopt;  // "max", -1
  return *allowed / *each;
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) {
      const std::size_t at = line.find(": ");
      return at == std::string::npos ? "" : line.substr(at + 2);
    }
  return "";
}

/// Entries "PREFIX123" of a directory.
std::vector<fs::path> numbered(const fs::path& directory, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    const bool digits = name.size() > prefix.size() && name.starts_with(prefix) &&
                        name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
    if (digits) found.push_back(at->path());
  }
  return found;
}

int sockets() {
  std::set<std::string> packages;
  for (const fs::path& core : numbered("/sys/devices/system/cpu", "cpu"))
    if (const std::string id = first_line(core / "topology/physical_package_id"); !id.empty())
      packages.insert(id);
  return std::max(1, int(packages.size()));
}

int usable_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return int(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

ControlGroups ControlGroups::of_this_process() {
  std::ifstream in("/proc/self/cgroup");
  ControlGroups groups;
  groups.membership.assign(std::istreambuf_iterator<char>(in), {});
  return groups;
}

std::optional<double> cpu_quota(const ControlGroups& groups) {
  const auto group = cpu_group(groups);
  if (!group) return std::nullopt;
  std::optional<double> tightest;
  for (fs::path at = existing(*group);; at = at.parent_path()) {
    if (const auto quota = quota_of(at, group->version))
      tightest = std::min(tightest.value_or(*quota), *quota);
    if (at == group->mount || !at.has_relative_path()) return tightest;
  }
}

Seconds throttled_time(const ControlGroups& groups) {
  const auto group = cpu_group(groups);
  if (!group) return {};
  const fs::path file = existing(*group) / "cpu.stat";
  return group->version == 2 ? Seconds{1e-6 * value_of(file, "throttled_usec").value_or(0)}
                             : Seconds{1e-9 * value_of(file, "throttled_time").value_or(0)};
}

std::optional<double> cpu_frequency() {
  const fs::path governed = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq";
  if (const auto kilohertz = number_in(first_line(governed))) return *kilohertz * 1e3;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("cpu MHz")) {
      const auto megahertz = number_in(line.substr(std::min(line.find(": ") + 2, line.size())));
      if (megahertz) return *megahertz * 1e6;
    }
  return std::nullopt;
}

MachineRecord describe_machine() {
  MachineRecord r;
  r.started = RunClock::starting_now().text();
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) r.host = host.data();
  r.processor = processor_name();
  r.stack = fmt::format("reckon-cpu-{}", matrix_instructions());
  r.cores = usable_cores();
  r.sockets = sockets();
  r.numa_nodes = std::max(1, int(numbered("/sys/devices/system/node", "node").size()));
  r.memory = Bytes{double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE))};
  r.cpu_quota = cpu_quota(ControlGroups::of_this_process());
  return r;
}

}  // namespace reckon
