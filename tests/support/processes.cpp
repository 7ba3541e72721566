#include "support/processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "executor/comm/errors.h"
#include "executor/comm/socket.h"
#include "sim/base/check.h"

namespace reckon {

namespace {
[[noreturn]] void run_child(int rank, const std::function<std::string(int)>& body, int out) {
  int code = 0;
  std::string output;
  try {
    output = body(rank);
  } catch (const CommError& error) {
    code = kExitLostPeer;
    output = error.what();
  } catch (const std::exception& error) {
    code = 1;
    output = error.what();
  }
  std::size_t written = 0;
  while (written < output.size()) {
    const ssize_t n = write(out, output.data() + written, output.size() - written);
    if (n <= 0) break;
    written += std::size_t(n);
  }
  std::fflush(nullptr);
  _exit(code);
}

/// Until all pipes are at their end, or the deadline.
void collect(const std::vector<int>& pipes, std::vector<ProcessOutcome>& outcomes,
             Deadline deadline) {
  std::size_t open = pipes.size();
  std::vector<pollfd> waits;
  for (const int fd : pipes) waits.push_back({fd, POLLIN, 0});
  while (open > 0 && !deadline.passed()) {
    if (poll(waits.data(), waits.size(), deadline.left_milliseconds()) <= 0) continue;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents == 0) continue;
      std::array<char, 65536> piece{};
      const ssize_t n = read(waits[i].fd, piece.data(), piece.size());
      if (n > 0) {
        outcomes[i].output.append(piece.data(), std::size_t(n));
      } else {
        waits[i].fd = -1;
        --open;
      }
    }
  }
}
}  // namespace

std::vector<ProcessOutcome> run_processes(
    int count, const std::function<std::string(int)>& body, Seconds limit,
    const std::function<void(const std::vector<pid_t>&)>& meanwhile) {
  std::vector<pid_t> processes;
  std::vector<int> pipes;
  std::fflush(nullptr);
  for (int rank = 0; rank < count; ++rank) {
    std::array<int, 2> ends{};
    RECKON_CHECK(pipe(ends.data()) == 0);
    const pid_t pid = fork();
    RECKON_CHECK(pid >= 0);
    if (pid == 0) {
      close(ends[0]);
      for (const int other : pipes) close(other);
      run_child(rank, body, ends[1]);
    }
    close(ends[1]);
    pipes.push_back(ends[0]);
    processes.push_back(pid);
  }
  if (meanwhile) meanwhile(processes);
  std::vector<ProcessOutcome> outcomes(processes.size());
  collect(pipes, outcomes, Deadline::after(limit));
  for (std::size_t i = 0; i < processes.size(); ++i) {
    close(pipes[i]);
    kill(processes[i], SIGKILL);  // no effect on one that has ended
    int status = 0;
    RECKON_CHECK(waitpid(processes[i], &status, 0) == processes[i]);
    outcomes[i].code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return outcomes;
}

}  // namespace reckon
