#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "executor/probe/host.h"

using namespace reckon;

namespace {

namespace fs = std::filesystem;

/// Control groups as files of the test's own.
class Groups {
 public:
  ~Groups() { fs::remove_all(groups_.root); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  explicit Groups(const std::string& membership) {
    groups_.root = fs::temp_directory_path() / ("reckon-cgroup-" + std::to_string(::getpid()));
    groups_.membership = membership;
    fs::remove_all(groups_.root);
  }
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((groups_.root / file).parent_path());
    std::ofstream(groups_.root / file) << text;
  }
  const ControlGroups& get() const { return groups_; }

 private:
  ControlGroups groups_;
};

}  // namespace

TEST_CASE("the tightest CPU quota of a group and those above it counts") {
  const Groups groups("0::/kubepods/pod7/main\n");
  groups.write("kubepods/cpu.max", "800000 100000\n");
  groups.write("kubepods/pod7/cpu.max", "150000 100000\n");
  groups.write("kubepods/pod7/main/cpu.max", "max 100000\n");
  groups.write("kubepods/pod7/main/cpu.stat",
               "usage_usec 5\nnr_throttled 2\nthrottled_usec 1500000\n");
  CHECK(cpu_quota(groups.get()) == 1.5);
  CHECK(throttled_time(groups.get()).count() == Approx(1.5));
}

TEST_CASE("without a limit there is no quota") {
  const Groups groups("0::/\n");
  groups.write("cpu.stat", "usage_usec 5\n");
  CHECK_FALSE(cpu_quota(groups.get()));
  CHECK(throttled_time(groups.get()).count() == 0);
  CHECK_FALSE(cpu_quota({"/nowhere", ""}));
}

TEST_CASE("version 1's cpu controller is read, from its root where the container hides the path") {
  const Groups groups("12:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n0::/\n");
  groups.write("cpu/cpu.cfs_quota_us", "50000\n");
  groups.write("cpu/cpu.cfs_period_us", "100000\n");
  groups.write("cpu/cpu.stat", "nr_periods 9\nthrottled_time 2000000000\n");
  CHECK(cpu_quota(groups.get()) == 0.5);
  CHECK(throttled_time(groups.get()).count() == Approx(2));
}

TEST_CASE("this machine has a core and memory") {
  const MachineRecord machine = describe_machine();
  CHECK(machine.cores >= 1);
  CHECK(machine.sockets >= 1);
  CHECK(machine.memory.v > 1e6);
  CHECK(machine.stack.starts_with("reckon-cpu-"));
  CHECK(machine.started.ends_with("Z"));
}
