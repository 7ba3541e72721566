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
  /// OUT.out and OUT.err.
  BackgroundJob(const Workspace& w, const std::string& file, const std::string& out,
                const std::string& options, const std::string& before = "")
      : err_(w.path(out + ".err")),
        process_({"reckon",
                  {"sh", "-c",
                   "cd '" + w.path("").string() + "' && exec " + before +
                       " '" RECKON_BINARY_DIR "/bin/reckon' run " + file + " --out " + out + ' ' +
                       options + " > " + out + ".out 2>> " + out + ".err"},
                  {},
                  {}}) {}

  bool running() { return !process_.poll_end(); }
  void signal(int number) { ::kill(process_.id(), number); }
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
  static void wait_until(const std::function<bool()>& over) {
    const auto until = Clock::now() + kPatience;
    while (!over() && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  std::filesystem::path err_;
  ChildProcess process_;
};

}  // namespace reckon::test
