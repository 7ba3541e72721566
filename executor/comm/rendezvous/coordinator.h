#pragma once
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/rendezvous/job_listener.h"
#include "executor/comm/rendezvous/rendezvous.h"

// Rank 0's side of the rendezvous: one thread that serves all members' connections.
namespace reckon {

enum class RendezvousMessage : std::uint16_t {
  hello = 1,  // member -> coordinator: who I am
  members,    // all are there: the list
  refused,    // text; for good
  not_yet,    // text; the coordinator of an earlier attempt: try again
  failed,     // text; the deadline has passed
  set,
  get,
  value,  // its key and it
  ask_blame,
  lost,    // ranks that are lost or hang; sent to all, once
  nobody,  // answer to ask_blame
  leave,
  over,     // rank 0 is done and does not wait for the others any longer
  stored,   // answer to set
  token,    // before `members`: 32 bytes that the rank shows to come back
  back,     // member -> coordinator: my connection was cut
  welcome,  // answer to back: a member as before
  differs,  // text; settings that are not rank 0's
};
inline constexpr std::uint64_t kRendezvousMessageLimit = 1 << 20;

struct Hello {
  int attempt = 0, size = 0;
  Member member;
  std::string mark;  // drawn by who says it: containers may share a name and process ids
  std::map<std::string, std::string> settings;
};
std::vector<std::byte> encode(const Hello& hello);
Hello decode_hello(std::span<const std::byte> bytes);
/// `back`, of the rank that has proved itself.
struct Return {
  int attempt = 0;
  std::string token;
};
std::vector<std::byte> encode(const Return& back);
Return decode_return(std::span<const std::byte> bytes);
std::vector<std::byte> encode(const std::vector<Member>& members);
std::vector<Member> decode_members(std::span<const std::byte> bytes);
std::vector<std::byte> encode(const std::vector<int>& ranks);
std::vector<int> decode_ranks(std::span<const std::byte> bytes);

/// "rank 3 (process 4242 on node7)".
std::string process_of(const Member& member);

class Coordinator {
 public:
  /// `own`: the way of rank 0 itself, which no stranger can close; nullopt: it comes as the others.
  Coordinator(Socket listener, const RendezvousOptions& options,
              std::optional<Channel> own = std::nullopt);
  ~Coordinator();
  HostPort address() const { return listener_.address(); }

 private:
  struct Connection {
    Channel channel;
    Connecting peer;
    MessageReader reader{kRendezvousMessageLimit};
    std::optional<Member> member;
    std::string mark;  // Hello::mark
    bool left = false, over = false;
    std::string cut;                    // what an answer met; "": no end of the connection
    std::optional<std::string> awaits;  // a key: one is asked for at a time
    std::optional<Deadline> asks;       // blame: the answer is due
  };
  /// Of a rank, once all are there.
  struct Seat {
    Member member;
    Nonce token{};
    std::optional<Deadline> kept_until;  // its connection was cut
  };

  void run();
  bool needed() const;
  void serve_once();
  int wait_milliseconds() const;
  void receive(Connection& from);
  void handle(Connection& from, const Message& message);
  struct Refusal {
    RendezvousMessage kind{};
    std::string why, of_rank;  // as the rank is told, and as rank 0 says it of the rank
  };
  std::optional<Refusal> why_not(const Hello& hello, const std::string& job) const;
  void handle_hello(Connection& from, const Hello& hello);
  void note_turned_away(const Member& member, const std::string& why,
                        const std::string& if_missing);
  void handle_return(Connection& from, const Return& back);
  void give_value(Connection& to, const std::string& key, const std::string& value);
  void refuse(Connection& from, RendezvousMessage kind, const std::string& why);
  void begin();  // all are there
  void give_up(const std::string& why);
  void end(Connection& gone, bool cut, const std::string& why);
  void keep_seat(Seat& seat, const std::string& why);
  Seconds grace() const;
  bool keeps_seats() const;
  void end_grace();
  void answer_blame();
  void declare_lost(const std::vector<int>& ranks);
  void reply(Connection& to, RendezvousMessage kind, std::span<const std::byte> payload);
  void reply(Connection& to, RendezvousMessage kind, const std::string& text);
  std::string missing() const;
  void say_waiting();

  const RendezvousOptions options_;
  const Deadline deadline_;
  JobListener listener_;
  WaitingWords words_;
  Socket wake_;  // readable: rank 0 is done
  std::list<Connection> connections_;
  std::vector<Connection*> by_rank_;
  std::vector<Seat> seats_;               // by rank; empty: not all are there yet
  std::vector<bool> vanished_;            // registered, then gone again, before all were there
  std::vector<std::string> turned_away_;  // why, of those that came and may not take part
  std::map<std::string, std::string> store_;
  std::optional<std::vector<int>> lost_;
  bool begun_ = false, stopped_ = false;
  std::optional<Deadline> closing_;  // rank 0 is done: until the others are, or then
  std::string nonlocal_address_;     // of this machine, as members elsewhere reach it
  std::thread thread_;
};

}  // namespace reckon
