#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "sim/measurement/probe_record.h"

// What the operating system says of this machine.
namespace reckon {

/// The control groups of a process: their files' root (/sys/fs/cgroup) and what /proc/self/cgroup
/// says of it. Version 2, and version 1's cpu controller.
struct ControlGroups {
  std::filesystem::path root = "/sys/fs/cgroup";
  std::string membership;
  static ControlGroups of_this_process();
};

/// Cores' worth of CPU time that the group and all above it allow, the tightest; nullopt: no limit.
std::optional<double> cpu_quota(const ControlGroups& groups);
/// For how long the group has been held back since it exists.
Seconds throttled_time(const ControlGroups& groups);

/// Frequency of the first core now, in hertz; nullopt where the system does not tell.
std::optional<double> cpu_frequency();

/// Everything of the record that does not change while a probe goes on.
MachineRecord describe_machine();

}  // namespace reckon
