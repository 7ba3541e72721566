#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"

// TCP with deadlines: every call ends, by success or by a SocketError that says why.
namespace reckon {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static Deadline after(Seconds s) {
    return Deadline{Clock::now() + std::chrono::duration_cast<Clock::duration>(s)};
  }
  bool passed() const { return Clock::now() >= at_; }
  Seconds left() const;           // at least 0
  int left_milliseconds() const;  // for poll(2): rounded up
  Deadline earlier(Deadline other) const { return Deadline{at_ < other.at_ ? at_ : other.at_}; }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

struct HostPort {
  std::string host;  // name, IPv4 or IPv6 address without brackets
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};
/// Of this machine alone: "localhost", 127.0.0.0/8 or ::1.
bool is_loopback(std::string_view host);
/// "host:port", "[v6]:port"; nullopt where it is neither, or the port is not in 0-65535.
std::optional<HostPort> parse_host_port(std::string_view text);
std::string text(const HostPort& address);

class SocketError : public std::runtime_error {
 public:
  enum class Kind { closed, timeout, refused, address_in_use, no_resources, other };
  SocketError(Kind kind, const std::string& what, bool cut = false)
      : std::runtime_error(what), kind(kind), cut(cut) {}
  Kind kind;
  /// The network ended the connection (reset, no answer, no route), or a process that ended with
  /// bytes unread. Not: the orderly end by a process that closes it or ends.
  bool cut;
};

/// Owns a file descriptor. Connected sockets do not block, send small messages at once and probe a
/// silent peer's host (keep-alive).
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();
  /// The connection is cut where the other side's host acknowledges nothing for so long. Keep-alive
  /// does not see that while bytes are on their way (TCP_USER_TIMEOUT, tcp(7)).
  void expect_acknowledgement_within(Seconds limit);
  /// Whether its close is a reset: to the other side a cut, not the end of a process.
  void reset_at_close(bool on);
  /// Tells the peer that no more will come, and makes every call on this socket, in any thread,
  /// return.
  void shutdown();
  HostPort local() const;
  HostPort peer() const;

 private:
  int fd_ = -1;
};

/// Port 0: any free one (ask local()). The host may be empty: all interfaces.
Socket listen_on(const HostPort& address);
/// Tries every address of the name again and again until the deadline: the listener may start
/// later.
Socket connect_to(const HostPort& address, Deadline deadline);
/// What a name means here, as addresses, each once; empty: that cannot be told (now).
std::vector<std::string> addresses_of(const std::string& host);
/// The address of this machine from which it reaches another; "": that cannot be told (now). Sends
/// nothing.
std::string local_address_towards(const HostPort& other);
/// nullopt: nobody came until the deadline. `no_resources`: somebody waits, and there is no
/// descriptor or memory for the connection now.
std::optional<Socket> accept_one(const Socket& listener, Deadline deadline);

/// Two ends of a connection within this machine, without a port. Throws `no_resources`.
std::pair<Socket, Socket> socket_pair();
/// To wake a thread that polls it: readable from when 8 bytes were written to it until they are
/// read (eventfd(2)); it does not block. Throws `no_resources`.
Socket wake_descriptor();

/// Waits until the socket can be read (written) or the deadline passes.
bool wait_readable(const Socket& socket, Deadline deadline);

void send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline);
/// Head and body with one system call where they fit.
void send_all(const Socket& socket, std::span<const std::byte> head,
              std::span<const std::byte> body, Deadline deadline);
void receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline);
/// What there is, without waiting: 0 = nothing now. Throws `closed` at the end.
std::size_t receive_some(const Socket& socket, std::span<std::byte> bytes);

}  // namespace reckon
