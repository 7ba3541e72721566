#include "executor/train/stop_signal.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "executor/comm/errors.h"

namespace reckon {
namespace {

std::atomic<int> requests{0};
static_assert(std::atomic<int>::is_always_lock_free, "set in a signal handler");

std::atomic<int> interrupts{0}, ends_on_request{0};
std::atomic<bool> second_interrupt_ends{false};

extern "C" void on_stop_signal(int number) {
  ++requests;
  if (ends_on_request > 0) ::_exit(kExitStoppedOnRequest);
  if (number == SIGINT && ++interrupts > 1 && second_interrupt_ends) ::_exit(128 + SIGINT);
}
extern "C" void on_ignored_signal(int) {}  // children have the default again, as of no SIG_IGN

bool termination_asks = true;

}  // namespace

void watch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  struct sigaction before {};  // nohup ignores it: then so do we
  ::sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
  if (!termination_asks) action.sa_handler = on_ignored_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void ignore_termination() { termination_asks = false; }

bool stop_requested() { return requests.load() > 0; }
int stop_requests() { return requests.load(); }
void request_stop() { ++requests; }

EndsOnRequest::EndsOnRequest() {
  ++ends_on_request;
  if (stop_requested()) ::_exit(kExitStoppedOnRequest);
}
EndsOnRequest::~EndsOnRequest() { --ends_on_request; }

void end_at_second_interrupt() { second_interrupt_ends = true; }

void end_with_parent(int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitLostPeer);
}

}  // namespace reckon
