#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/train/checkpoint/durable_file.h"

// One child process, started with posix_spawn: its merged output and its progress come back over
// pipes.
namespace reckon {

struct ProcessSpec {
  std::string name;                                              // "rank 0", for messages
  std::vector<std::string> command;                              // looked up in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // over ours
  /// Descriptors that the child keeps: the variable that tells it the number, and ours.
  std::vector<std::pair<std::string, int>> inherited;
  /// It says where it is (ProgressPipe). Whoever does not cannot be found silent.
  bool reports = true;
  /// What it reads from standard input, all of it at once; nullopt: /dev/null.
  std::optional<std::string> input;
  bool errors_apart = false;  // standard error is not merged into the output
  /// It does not look whether we are gone (kill -9): its group is killed then.
  bool outlives_us = false;
};

struct ProcessEnd {
  int code = 0;    // of exit
  int signal = 0;  // that killed it; 0: it exited
  bool good() const { return code == 0 && signal == 0; }
};
/// "ended with code 3", "was killed by signal 9 (Killed)".
std::string to_text(const ProcessEnd& end);

class ChildProcess {
 public:
  /// In a process group of its own (a terminal's Ctrl-C does not reach it), signals as by default,
  /// progress on the descriptor that ProgressPipe looks for. Throws
  /// std::runtime_error where it cannot be started.
  explicit ChildProcess(const ProcessSpec& spec);
  /// Kills and reaps it where it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  int output() const { return output_.get(); }      // non-blocking
  int errors() const { return errors_.get(); }      // non-blocking; -1: they are in the output
  int progress() const { return progress_.get(); }  // non-blocking
  int handle() const { return handle_.get(); }      // pidfd: readable when it has ended

  /// Its end, once it has come; reaps it.
  std::optional<ProcessEnd> poll_end();
  void signal(int number);  // to its whole group; nothing when it has ended
  /// It has ended, and what it started and left, killed with it, is not quite gone: it holds what
  /// it inherited for a moment more.
  bool has_remains() const;

 private:
  void end_watcher();

  pid_t id_ = -1;
  pid_t watcher_ = -1;  // waits for our end; -1: nobody does
  FileHandle output_, errors_, progress_, handle_;
  std::optional<ProcessEnd> end_;
};

/// The letter of a process's state in /proc: 'T' stopped, 'D' waiting for a device, 'R', 'S'; 0
/// where it cannot be told.
char state_of_process(pid_t id);

}  // namespace reckon
