#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/crypto.h"
#include "executor/comm/errors.h"
#include "executor/comm/rendezvous/job_secret.h"
#include "executor/comm/socket.h"
#include "executor/comm/wire.h"
#include "sim/scenario/scenario.h"

// How the processes of a job find each other, and how they agree on who is lost. Rank 0 listens at
// the master's address; every rank (rank 0 too) proves there that it knows the job's secret,
// registers and keeps its connection, so the end of a process is seen at once, by everybody in the
// same order.
//
// The system of a process that ends closes its connections in order: its rank is lost at once. A
// connection that is cut (reset, no answer, no route) says nothing of the process: it connects
// again, proves the secret again and shows the token that rank 0 gave it alone when all were there;
// then it is a member as before. Its rank is lost when the grace is over. A process that is killed
// with bytes unread in its connection looks like a cut, too [Linux, tcp_close()]; the watch of each
// member leaves none. This is of connections to rank 0: where one between ranks is cut, what they
// were doing fails.
namespace reckon {

/// Until a connection without an answer is cut: keep-alive's 5 s and three probes 2 s apart
/// (socket.cpp), and the same while bytes are on their way.
inline constexpr Seconds kRendezvousSilence{11};
/// For a process to come back where connections between ranks have failed, too (somebody asks whose
/// fault it is): the process at the other end is probably gone.
inline constexpr Seconds kGraceWhenMissed{2};

struct Member {
  int rank = 0;  // workers first (chief is rank 0), then parameter servers
  Role role = Role::worker;
  HostPort address;  // reachable by the others; port: of the rank's own listener, 0 = none
  std::string host;  // the machine's name
  std::int64_t process = 0;
};

struct RendezvousOptions {
  JobSecret secret;            // the same for all members
  std::string job = "reckon";  // ranks of another job, or of another attempt, are turned away
  int attempt = 0;             // counts restarts of the job
  bool restarted = false;      // it is a restart, also where `attempt` does not count it
  int rank = 0, size = 1;      // size: of all members, servers included
  Role role = Role::worker;
  HostPort master;
  std::string address;     // of this rank's interface; empty: the one that reaches the master
  std::uint16_t port = 0;  // told to the others
  Seconds deadline{300};   // until all are there
  /// Of this rank's start, name and value: those that rank 0 has, too, must be the same there, or
  /// the rank is turned away with all that differ.
  std::map<std::string, std::string> settings;
  /// For a rank whose connection was cut to come back; kGraceWhenMissed once somebody asks. The
  /// two sides see a silent cut 6 to 11 s after it, so one up to 5 s before the other; then there
  /// is time for two tries of 2 s. Less than ranks wait for each other: 120 s of a collective.
  Seconds grace{10};
  /// Told of connections that are turned away, and of ranks that were cut off; may be empty.
  std::function<void(const std::string&)> warn;
  /// Told what this rank waits for, where and for whom: once `quiet` has passed, then after three
  /// times as long each; may be empty.
  std::function<void(const std::string&)> waiting;
  Seconds quiet{10};
};

/// When a process that waits says so.
class WaitingWords {
 public:
  explicit WaitingWords(Seconds quiet) : quiet_(quiet), next_(Deadline::after(quiet)) {}
  Deadline next() const { return next_; }
  bool due() const { return next_.passed(); }
  void said() { next_ = Deadline::after(3 * quiet_); }

 private:
  Seconds quiet_;
  Deadline next_;
};

class Coordinator;
enum class RendezvousMessage : std::uint16_t;

class Membership {
 public:
  /// Returns when all ranks are registered. Throws CommError: who is missing at the deadline; no
  /// answer at the master's address; its port in use; another secret; wrong size, attempt or job; a
  /// rank that is there twice. Throws SettingsDiffer. `listener`: rank 0 may bring the listening
  /// socket (then no port can be lost between choosing and using it).
  static std::unique_ptr<Membership> join(const RendezvousOptions& options,
                                          std::optional<Socket> listener = std::nullopt);
  /// Says goodbye: the others will not miss this rank. Not while an exception ends what the rank
  /// was doing: then it is lost to them.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  int attempt() const { return options_.attempt; }
  const RendezvousOptions& options() const { return options_; }
  const std::vector<Member>& members() const { return members_; }

  /// A small store that all ranks share. `get` waits until somebody has set the key. From any
  /// thread. Throw CommError.
  void set(const std::string& key, std::span<const std::byte> value);
  std::vector<std::byte> get(const std::string& key, Deadline deadline);

  /// After something failed that others took part in (a connection ended, a deadline passed): who
  /// is at fault? A rank whose process ended; else, after `grace`, those that do not ask the same
  /// question: they hang. Everybody gets the same answer. Empty: nobody is known to be.
  std::vector<int> blame(Seconds grace);
  /// `what` with the blamed ranks' names: "all-reduce of 100 MB: rank 3 (worker on node7, process
  /// 4242) is lost".
  CommError lost_peer(const std::string& what, Seconds grace);
  std::string name_of(int rank) const;
  /// Calls `act` once, from another thread, as soon as a rank is lost: who waits for ranks by other
  /// connections need not wait for their deadlines. `act` is not called, or has returned, once this
  /// object is gone.
  void on_loss(std::function<void()> act);
  /// A rank is lost, as far as this one has been told.
  bool knows_loss();
  /// "rank 3 (worker on node7, process 4242) is lost"; nullopt: this one knows of none.
  std::optional<CommError> loss();
  /// A number for each thing that the ranks build together, in the same order: 0, 1, ...
  int next_number() { return next_number_++; }

 private:
  explicit Membership(RendezvousOptions options);
  void register_with_master();
  void find_master(Deadline deadline);
  void say_waiting(const std::string& what, Deadline deadline);
  std::string word_before() const;
  Message say_hello(Deadline deadline);
  HostPort place_of_master() const;
  Channel connect_to_master(Deadline deadline) const;
  std::optional<Message> ask(RendezvousMessage question, std::span<const std::byte> payload,
                             RendezvousMessage answer, Deadline deadline,
                             const std::function<bool(const Message&)>& fits = {});
  bool come_back();
  bool try_to_come_back();
  void send(RendezvousMessage kind, std::span<const std::byte> payload, Deadline deadline);
  Message next_message(Deadline deadline);
  void know_lost(std::vector<int> ranks);
  void wake_watch();
  void watch();
  bool read_unasked();

  RendezvousOptions options_;
  std::unique_ptr<Coordinator> coordinator_;  // rank 0's
  std::mutex mutex_;                          // of the connection
  std::optional<Channel> master_;
  std::vector<Member> members_;
  const Nonce mark_ = random_nonce();  // of this object alone
  std::string token_;                  // shown to come back
  WaitingWords words_;
  std::string last_word_;  // of rank 0, or of a connection to it, before all were there
  int next_number_ = 0;
  std::optional<std::vector<int>> lost_;  // once known, for good
  std::mutex acts_mutex_;
  std::vector<std::function<void()>> acts_;  // at a loss
  bool acted_ = false;
  Socket wake_;  // readable: a loss is known, the connection is another, or the end has come
  std::atomic<bool> ends_ = false;
  std::atomic<bool> asks_ = false;  // whose fault it is
  std::thread watch_;
};

}  // namespace reckon
