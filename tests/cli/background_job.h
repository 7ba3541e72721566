#pragma once
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/run_reckon.h"
#include "executor/launch/process.h"

namespace reckon::test {

/// `reckon run` in the background of a test, in its workspace; killed at the end where it still
/// runs.
class BackgroundJob {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{120};

  /// `options` are words of the shell, and `before` those before the program's name; output goes to
  /// OUT.out and OUT.err. It is waited for as long as `patience` says.
  BackgroundJob(const Workspace& w, const std::string& file, const std::string& out,
                const std::string& options, const std::string& before = "",
                std::chrono::seconds patience = kPatience)
      : out_(w.path(out + ".out")),
        err_(w.path(out + ".err")),
        patience_(patience),
        process_({"reckon",
                  {"sh", "-c",
                   "cd '" + w.path("").string() + "' && exec " + before +
                       " '" RECKON_BINARY_DIR "/bin/reckon' run " + file + " --out " + out + ' ' +
                       options + " > " + out + ".out 2>> " + out + ".err"},
                  {},
                  {}}) {}

  pid_t id() const { return process_.id(); }
  bool running() { return !process_.poll_end(); }
  void signal(int number) { ::kill(process_.id(), number); }
  std::string output() const { return read_all(out_); }
  std::string errors() const { return read_all(err_); }
  /// Its processes, in the order of their ranks; fewer while they are started or end.
  std::vector<pid_t> workers() const {
    const std::string id = std::to_string(process_.id());
    std::istringstream text(read_all("/proc/" + id + "/task/" + id + "/children"));
    std::vector<pid_t> ids;
    for (pid_t child = 0; text >> child;) ids.push_back(child);
    return ids;
  }
  /// Its exit code; -1 where it does not end in time.
  int code() {
    wait_until([this] { return !running(); });
    const auto end = process_.poll_end();
    return end ? end->code + (end->signal != 0 ? 128 + end->signal : 0) : -1;
  }
  /// Waits until `there` or the job has ended: false.
  bool wait_for(const std::function<bool()>& there) {
    bool is_there = false;
    wait_until([&] { return (is_there = there()) || !running(); });
    return is_there;
  }

 private:
  void wait_until(const std::function<bool()>& over) const {
    const auto until = Clock::now() + patience_;
    while (!over() && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  std::filesystem::path out_, err_;
  std::chrono::seconds patience_;
  ChildProcess process_;
};

}  // namespace reckon::test
