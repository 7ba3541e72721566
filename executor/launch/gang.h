#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/comm/socket.h"
#include "executor/launch/watched_process.h"
#include "sim/base/quantity.h"
#include "sim/cluster/life/life.h"

// All processes of one job, started together, watched until the last has ended. Nothing is started
// again here: see supervise.h.
namespace reckon {

struct GangOptions {
  std::vector<ProcessSpec> members;  // workers by rank, then parameter servers
  /// In place of them: processes that run already and have their orders, by rank.
  std::vector<std::shared_ptr<WatchedProcess>> running;
  /// Stand by for a later start. What they say comes under the numbers behind the members'; their
  /// ends are nobody's loss.
  std::vector<std::shared_ptr<WatchedProcess>> beside;
  /// Members that lose their peers, or are told to regroup, do not end but wait for the next start
  /// (ProgressPhase::waiting, with this `attempt`): for the gang of this start as if they had ended
  /// with kExitLostPeer.
  bool stays = false;
  std::int64_t attempt = 0;
  /// Where they meet: rank 0 inherits it. Held until all are started, so that no other program can
  /// take the port, and not longer, so that nobody waits at it for a rank 0 that is gone.
  Socket rendezvous;
  /// Without a word of progress for so long a member hangs; 0: never. `start_deadline` (where that
  /// is longer) holds before the first word and in phases that take as long as the state is large:
  /// opening data, starting, restoring, saving. While a member is in one of these, those that came
  /// further wait for it. A member that does not report is never found silent.
  Seconds progress_deadline{0}, start_deadline{0};
  /// From a request to stop until SIGKILL: what an emergency checkpoint may take.
  Seconds notice{30};
  /// The same of StopRequest::own, where that is longer: a step and its checkpoint. Empty: it is
  /// not.
  std::function<Seconds()> own_notice;
  /// From a member's failure until the others are killed: what they need to notice it and to end
  /// what they are writing.
  Seconds grace{5};
  /// The programs are not ours: of their codes only 0 has a meaning, and nobody knows whether they
  /// have anything to write, so after a failure the others get SIGTERM at once and all the grace.
  bool foreign = false;
  /// Why all members hang, where whoever hears what they print knows it; "": they do not. They are
  /// then ended as after a failure.
  std::function<std::string()> hangs;
  /// The job is over when member 0 has ended with 0: what still runs a grace later is asked to end
  /// (SIGTERM, SIGKILL after the notice), and counts as finished whatever it ends with. So end
  /// TensorFlow's parameter servers, which never do by themselves.
  bool ends_with_first = false;
};

/// What the watcher wants to know while the gang runs; each may be empty.
struct GangEvents {
  std::function<void(int member, std::string_view line)> output;  // without its newline
  std::function<void(int member, const ProgressReport&)> progress;
  std::function<void()> tick;  // ten times a second
};

/// A request to the whole gang from outside, looked at whenever something happens and at ticks.
/// own: whoever watches it wants to go on otherwise, or not; nobody takes its machines away.
enum class StopRequest { none, own, graceful, at_once };

/// What a stop of one's own waits for: such a step and such a save, three times as long and a
/// minute more. Assumed, not measured.
Seconds time_for_own_stop(Seconds step, Seconds save);

/// By the signals that have come (watch_stop_signals()): the second does not wait for checkpoints.
StopRequest requested_by_signals();

struct GangEnd {
  std::vector<ProcessEnd> ends;  // by member
  std::vector<std::string>
      reasons;                 // likewise, of a gang elsewhere: "was deleted"; "": it ended well
  std::optional<int> culprit;  // whose end or silence ended the others; none: all ended well, or
                               // were asked to stop
  bool hung = false;           // the culprit was killed because it was silent, or all were
  bool asked = false;          // a StopRequest came; not an own one that ended otherwise than well
  bool regroups = false;       // nobody is lost: all wait for the next start, as they were told
  /// The code is that of a program that is not ours, and says nothing: a later start may go better.
  bool unexplained = false;
  std::optional<Interruption> cause;  // where whoever ran it knows more than the code says
  std::string reason;                 // "rank 2 was killed by signal 9 (Killed)"
  std::string last_words;             // the last line that the culprit printed; "": none
  /// The code that says what to do next: that of the culprit, 128 + its signal, 75 where all
  /// stopped on request, 0 where all ended well.
  int code = 0;
};

/// Starts all, or none where one cannot be started (throws std::runtime_error).
GangEnd run_gang(GangOptions options, const GangEvents& events,
                 const std::function<StopRequest()>& stop);

}  // namespace reckon
