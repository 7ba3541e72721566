#pragma once

namespace reckon {

/// SIGTERM and SIGINT ask this process to stop: to make a checkpoint at the end of the step and to
/// exit with kExitStoppedOnRequest. Also ignores SIGPIPE and SIGXFSZ, so that what they tell
/// arrives as errors of the calls. For main(), before threads start.
void watch_stop_signals();
/// From now on SIGTERM asks for nothing: of a launcher whose own end is not the run's, as somebody
/// takes its place. Before watch_stop_signals().
void ignore_termination();
/// Whether one has come since. From any thread.
bool stop_requested();
/// How many have come.
int stop_requests();
/// As if one had come; for tests, and for limits such as a number of steps.
void request_stop();

/// While one lives, a request ends this process at once, with kExitStoppedOnRequest: it waits, and
/// has nothing to save.
class EndsOnRequest {
 public:
  EndsOnRequest();
  ~EndsOnRequest();
  EndsOnRequest(const EndsOnRequest&) = delete;
  EndsOnRequest& operator=(const EndsOnRequest&) = delete;
};
/// From now on a second SIGINT ends this process at once, as a shell expects of one that the signal
/// ended: of a process that nobody watches, and that may wait for others for ever.
void end_at_second_interrupt();

/// Ends this process when its parent is killed, so that nobody trains unwatched in a directory that
/// looks free. `parent`: who that must be; ends at once where it is gone already.
void end_with_parent(int parent);

/// Exit code of a worker that stopped on request behind a checkpoint (EX_TEMPFAIL of sysexits.h).
inline constexpr int kExitStoppedOnRequest = 75;

}  // namespace reckon
