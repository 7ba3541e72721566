#include "executor/train/stop_signal.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "executor/comm/errors.h"

namespace reckon {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

extern "C" void on_stop_signal(int) { requested.store(true); }

}  // namespace

void watch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool stop_requested() { return requested.load(); }
void request_stop() { requested.store(true); }

void end_with_parent(int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitLostPeer);
}

}  // namespace reckon
