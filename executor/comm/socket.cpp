#include "executor/comm/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "sim/base/check.h"

namespace reckon {

namespace {
std::string error_text(int error) { return std::generic_category().message(error); }

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
AddressList resolve(const HostPort& address, bool to_listen) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int code = getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), port.c_str(),
                               &hints, &found);
  if (code != 0)
    throw SocketError(SocketError::Kind::other,
                      fmt::format("'{}' is no address: {}", address.host,
                                  code == EAI_SYSTEM ? error_text(errno) : gai_strerror(code)));
  return {found, &freeaddrinfo};
}

void set_option(int fd, int level, int option, int value) {
  // Without effect where the system lacks it; correctness never rests on these.
  (void)setsockopt(fd, level, option, &value, sizeof value);
}

void prepare_connected(int fd) {
  constexpr int kIdleSeconds = 5, kIntervalSeconds = 2, kProbes = 3;
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0) (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kIntervalSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

bool wait_for(int fd, short events, Deadline deadline) {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  while (true) {
    const int ready = poll(&entry, 1, deadline.left_milliseconds());
    if (ready > 0) return true;
    if (ready == 0 && deadline.passed()) return false;
    if (ready < 0 && errno != EINTR)
      throw SocketError(SocketError::Kind::other, "poll: " + error_text(errno));
  }
}

HostPort name_of(const sockaddr_storage& storage, socklen_t length) {
  if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) return {};
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, host.data(), host.size(),
                  port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  std::string name = host.data();
  // An IPv4 client of a dual-stack listener.
  constexpr std::string_view kMapped = "::ffff:";
  if (name.starts_with(kMapped) && name.find('.') != std::string::npos)
    name.erase(0, kMapped.size());
  return {.host = name, .port = std::uint16_t(std::stoi(port.data()))};
}

/// The peer of a socket whose connection is over has no name any more.
std::string peer_text(const Socket& socket) {
  const HostPort peer = socket.peer();
  return peer.host.empty() ? "the other side" : text(peer);
}

[[noreturn]] void throw_closed(const Socket& socket, int error) {
  const bool lost = error == 0 || error == ECONNRESET || error == EPIPE || error == ENOTCONN;
  constexpr std::array kCut{ECONNRESET,  ECONNABORTED, ETIMEDOUT, EHOSTUNREACH,
                            ENETUNREACH, EHOSTDOWN,    ENETDOWN,  ENETRESET};
  throw SocketError(lost ? SocketError::Kind::closed : SocketError::Kind::other,
                    fmt::format("connection to {}: {}", peer_text(socket),
                                error == 0 ? "closed by the other side" : error_text(error)),
                    std::ranges::find(kCut, error) != kCut.end());
}
}  // namespace

Seconds Deadline::left() const { return std::max(Seconds{}, Seconds{at_ - Clock::now()}); }
int Deadline::left_milliseconds() const {
  return int(std::min(std::ceil(left().count() * 1e3), double(INT_MAX)));
}

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

std::optional<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return std::nullopt;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;  // an IPv6 address needs its brackets
  }
  HostPort address{.host = std::string(host), .port = 0};
  const auto [end, code] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (host.empty() || port.empty() || code != std::errc{} || end != port.data() + port.size())
    return std::nullopt;
  return address;
}

std::string text(const HostPort& address) {
  if (address.host.find(':') == std::string::npos)
    return fmt::format("{}:{}", address.host, address.port);
  return fmt::format("[{}]:{}", address.host, address.port);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}
void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}
void Socket::expect_acknowledgement_within(Seconds limit) {
  set_option(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, int(std::ceil(limit.count() * 1e3)));
}
void Socket::reset_at_close(bool on) {
  const linger at_once{.l_onoff = on ? 1 : 0, .l_linger = 0};
  (void)setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void Socket::shutdown() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}
HostPort Socket::local() const {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return name_of(storage, length);
}
HostPort Socket::peer() const {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return name_of(storage, length);
}

Socket listen_on(const HostPort& address) {
  const AddressList list = resolve(address, true);
  constexpr int kBacklog = 512;
  int error = 0;
  // An IPv6 wildcard socket takes IPv4 too, so it comes first.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
      if (a->ai_family != family) continue;
      Socket socket{::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
      if (!socket) {
        error = errno;
        continue;
      }
      set_option(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);  // for connections in TIME_WAIT
      if (family == AF_INET6) set_option(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
      if (bind(socket.fd(), a->ai_addr, a->ai_addrlen) == 0 && listen(socket.fd(), kBacklog) == 0)
        return socket;
      error = errno;
      if (error == EADDRINUSE) break;
    }
    if (error == EADDRINUSE) break;
  }
  throw SocketError(
      error == EADDRINUSE ? SocketError::Kind::address_in_use : SocketError::Kind::other,
      fmt::format("cannot listen at {}: {}", text(address), error_text(error)));
}

Socket connect_to(const HostPort& address, Deadline deadline) {
  constexpr Seconds kFirstPause = 2ms, kLongestPause = 200ms;
  constexpr Seconds kOneTry = 3s;  // a silent address must not use up the others' time
  Seconds pause = kFirstPause;
  std::string why;
  auto kind = SocketError::Kind::timeout;
  while (true) {
    try {
      const AddressList list = resolve(address, false);
      for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
        Socket socket{::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        int error = errno;
        if (socket) {
          error = connect(socket.fd(), a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
          if (error == EINPROGRESS) {
            error = ETIMEDOUT;
            socklen_t length = sizeof error;
            if (wait_for(socket.fd(), POLLOUT, deadline.earlier(Deadline::after(kOneTry))))
              (void)getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
          }
        }
        // A loopback connection to a port nobody listens on can meet itself (simultaneous open).
        if (error == 0 && socket.local() == socket.peer()) error = ECONNREFUSED;
        if (error == 0) {
          prepare_connected(socket.fd());
          return socket;
        }
        kind = error == ECONNREFUSED ? SocketError::Kind::refused : SocketError::Kind::timeout;
        why = error_text(error);
      }
    } catch (const SocketError& no_name) {  // the name server may learn it later
      kind = no_name.kind;
      why = no_name.what();
    }
    if (deadline.left() <= pause) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  throw SocketError(kind, fmt::format("cannot connect to {}: {}", text(address), why));
}

std::vector<std::string> addresses_of(const std::string& host) {
  std::vector<std::string> all;
  try {
    const AddressList list = resolve({host, 0}, false);
    for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
      sockaddr_storage storage{};
      std::memcpy(&storage, a->ai_addr, a->ai_addrlen);
      std::string name = name_of(storage, a->ai_addrlen).host;
      if (std::ranges::find(all, name) == all.end()) all.push_back(std::move(name));
    }
  } catch (const SocketError&) {
    // A name that is not known yet.
  }
  return all;
}

std::string local_address_towards(const HostPort& other) {
  try {
    const AddressList list = resolve(other, false);
    for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
      const Socket socket{::socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
      if (socket && connect(socket.fd(), a->ai_addr, a->ai_addrlen) == 0)
        return socket.local().host;
    }
  } catch (const SocketError&) {
    // A name that is not known yet.
  }
  return "";
}

std::optional<Socket> accept_one(const Socket& listener, Deadline deadline) {
  while (wait_for(listener.fd(), POLLIN, deadline)) {
    Socket socket{accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (socket) {
      prepare_connected(socket.fd());
      return socket;
    }
    const int error = errno;
    // Of a connection that is no more [accept(2), "Error handling"].
    constexpr std::array kGone{EAGAIN,      EINTR,     ECONNABORTED, ENETDOWN,     EPROTO,
                               ENOPROTOOPT, EHOSTDOWN, ENONET,       EHOSTUNREACH, EOPNOTSUPP,
                               ENETUNREACH, EPERM,     ETIMEDOUT};
    if (std::ranges::find(kGone, error) != kGone.end()) continue;
    constexpr std::array kScarce{EMFILE, ENFILE, ENOBUFS, ENOMEM};
    const bool scarce = std::ranges::find(kScarce, error) != kScarce.end();
    throw SocketError(scarce ? SocketError::Kind::no_resources : SocketError::Kind::other,
                      "accept: " + error_text(error));
  }
  return std::nullopt;
}

std::pair<Socket, Socket> socket_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    throw SocketError(SocketError::Kind::no_resources, "socketpair: " + error_text(errno));
  return {Socket(ends[0]), Socket(ends[1])};
}

Socket wake_descriptor() {
  Socket socket{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!socket) throw SocketError(SocketError::Kind::no_resources, "eventfd: " + error_text(errno));
  return socket;
}

bool wait_readable(const Socket& socket, Deadline deadline) {
  return wait_for(socket.fd(), POLLIN, deadline);
}

void send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline) {
  send_all(socket, bytes, {}, deadline);
}

void send_all(const Socket& socket, std::span<const std::byte> head,
              std::span<const std::byte> body, Deadline deadline) {
  while (!head.empty() || !body.empty()) {
    std::array<iovec, 2> parts{iovec{const_cast<std::byte*>(head.data()), head.size()},
                               iovec{const_cast<std::byte*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket.fd(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      if (!wait_for(socket.fd(), POLLOUT, deadline))
        throw SocketError(SocketError::Kind::timeout,
                          fmt::format("{} takes no data", peer_text(socket)));
      continue;
    }
    if (sent < 0) throw_closed(socket, errno);
    const std::size_t of_head = std::min(head.size(), std::size_t(sent));
    head = head.subspan(of_head);
    body = body.subspan(std::size_t(sent) - of_head);
  }
}

std::size_t receive_some(const Socket& socket, std::span<std::byte> bytes) {
  RECKON_CHECK(!bytes.empty());
  while (true) {
    const ssize_t got = recv(socket.fd(), bytes.data(), bytes.size(), 0);
    if (got > 0) return std::size_t(got);
    if (got == 0) throw_closed(socket, 0);
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) throw_closed(socket, errno);
  }
}

void receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const std::size_t got = receive_some(socket, bytes);
    bytes = bytes.subspan(got);
    if (got == 0 && !wait_for(socket.fd(), POLLIN, deadline))
      throw SocketError(SocketError::Kind::timeout, fmt::format("{} is silent", peer_text(socket)));
  }
}

}  // namespace reckon
