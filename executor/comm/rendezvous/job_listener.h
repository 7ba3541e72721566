#pragma once
#include <poll.h>

#include <array>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "executor/comm/wire.h"

namespace reckon {

struct JobListenerLimits {
  Seconds hello{5};  // from a connection to the proof of its process
  /// Connections without a proof; then one gives way, once it had time for its proof. All processes
  /// of a job may come at once.
  std::size_t pending = 128;
  Seconds heard{0.1};  // for its proof, whoever else comes
  static JobListenerLimits for_processes(int count) {
    JobListenerLimits limits;
    limits.pending += std::size_t(count);
    return limits;
  }
};

/// A listening socket of a process of the job, for a thread that polls. Connections of the job's
/// other processes come out of it; those that do not prove that they know the secret are closed and
/// counted, however many there are, and keep nobody waiting. Where the process is out of
/// descriptors connections wait in the system's queue.
class JobListener {
 public:
  struct Admitted {
    Channel channel;
    Connecting peer;
  };
  using Warn = std::function<void(const std::string&)>;

  /// `warn` is told of the first that is turned away, and at the end how many were; it may be
  /// empty.
  JobListener(Socket listener, const JobSecret& secret, const Listening& self, Warn warn,
              const JobListenerLimits& limits = {});
  ~JobListener();
  JobListener(const JobListener&) = delete;
  JobListener& operator=(const JobListener&) = delete;

  HostPort address() const { return address_; }
  /// What to poll for, and how long at most; negative: for ever.
  void add_to(std::vector<pollfd>& waits) const;
  int due_milliseconds() const;
  /// All that can be done without waiting. Throws SocketError where the listener is of no use any
  /// more.
  std::vector<Admitted> admit();
  /// "12 connections were turned away: 9 said nothing in time, 3 know another secret"; "": none.
  std::string turned_away() const;

 private:
  enum class Reason {
    silent,
    closed,
    displaced,
    other_protocol,
    other_version,
    other_listener,
    other_secret,
    count
  };
  struct Pending {
    Socket socket;
    AcceptorHandshake handshake;
    Deadline deadline, heard;  // it may give way once it could be heard
    std::string from;          // the other side's address
    bool spoke = false, over = false;
  };

  void accept_all(std::vector<Admitted>& admitted);
  bool accept_next();
  bool make_room();
  void serve(Pending& one, std::vector<Admitted>& admitted);
  void turn_away(Pending& one, Reason reason, const std::string& why);

  Socket listener_;
  const HostPort address_;
  const JobSecret secret_;
  const Listening self_;
  const Warn warn_;
  const JobListenerLimits limits_;
  std::list<Pending> pending_;     // the oldest first
  std::optional<Deadline> pause_;  // no room, or no descriptors, until then
  std::array<std::int64_t, std::size_t(Reason::count)> counts_{};
};

}  // namespace reckon
