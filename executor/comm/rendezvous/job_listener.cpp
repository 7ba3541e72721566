#include "executor/comm/rendezvous/job_listener.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

namespace reckon {

namespace {
/// What has arrived and is not read when a socket is closed makes the system throw away what is on
/// its way to the other side.
void say_last(const Socket& socket, std::span<const std::byte> bytes) {
  std::array<std::byte, 4096> unread{};
  (void)::recv(socket.fd(), unread.data(), unread.size(), MSG_DONTWAIT);
  (void)::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}
}  // namespace

JobListener::JobListener(Socket listener, const JobSecret& secret, const Listening& self, Warn warn,
                         const JobListenerLimits& limits)
    : listener_(std::move(listener)),
      address_(listener_.local()),
      secret_(secret),
      self_(self),
      warn_(std::move(warn)),
      limits_(limits) {}

JobListener::~JobListener() {
  const auto all = std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
  if (warn_ && all > 1) warn_(turned_away());
}

void JobListener::add_to(std::vector<pollfd>& waits) const {
  const bool paused = pause_ && !pause_->passed();
  waits.push_back({paused ? -1 : listener_.fd(), POLLIN, 0});
  for (const Pending& one : pending_) waits.push_back({one.socket.fd(), POLLIN, 0});
}

int JobListener::due_milliseconds() const {
  int due = -1;
  const auto wake_at = [&](const Deadline& deadline) {
    const int left = deadline.left_milliseconds();
    due = due < 0 ? left : std::min(due, left);
  };
  if (pause_) wake_at(*pause_);
  if (!pending_.empty()) wake_at(pending_.front().deadline);
  return due;
}

std::vector<JobListener::Admitted> JobListener::admit() {
  std::vector<Admitted> admitted;
  for (Pending& one : pending_) serve(one, admitted);
  pending_.remove_if([](const Pending& one) { return one.over; });
  accept_all(admitted);
  return admitted;
}

/// No more at once than leaves time for those that are there.
void JobListener::accept_all(std::vector<Admitted>& admitted) {
  for (std::size_t k = 0; k < limits_.pending && accept_next(); ++k) {
    serve(pending_.back(), admitted);  // its hello is often there with it
    if (pending_.back().over) pending_.pop_back();
  }
}

/// False: nobody waits, or there is no room or descriptor for whoever does, and the system's queue
/// keeps him.
bool JobListener::accept_next() {
  if (pause_ && !pause_->passed()) return false;
  pause_.reset();
  while (true) {
    const bool full = pending_.size() >= limits_.pending;
    if (full && (!wait_readable(listener_, Deadline::after(Seconds{})) || !make_room()))
      return false;
    std::optional<Socket> socket;
    try {
      socket = accept_one(listener_, Deadline::after(Seconds{}));
    } catch (const SocketError& error) {
      if (error.kind != SocketError::Kind::no_resources) throw;
      constexpr Seconds kUntilOthersEnd{0.2};
      if (pending_.empty()) pause_ = Deadline::after(kUntilOthersEnd);
      if (pending_.empty() || !make_room()) return false;
      continue;
    }
    if (!socket) return false;
    std::string from = socket->peer().host;
    pending_.push_back({.socket = std::move(*socket),
                        .handshake = {secret_, self_, random_nonce()},
                        .deadline = Deadline::after(limits_.hello),
                        .heard = Deadline::after(limits_.heard),
                        .from = std::move(from)});
    return true;
  }
}

/// Of those from addresses that have most, the oldest that said nothing, else the oldest. False: it
/// came just now, so nobody gives way for a moment.
bool JobListener::make_room() {
  std::map<std::string_view, std::size_t> counts;
  std::size_t most = 0;
  for (const Pending& one : pending_) most = std::max(most, ++counts[one.from]);
  const auto of_most = [&](const Pending& one) { return counts[one.from] == most; };
  auto oldest =
      std::ranges::find_if(pending_, [&](const Pending& p) { return of_most(p) && !p.spoke; });
  if (oldest == pending_.end()) oldest = std::ranges::find_if(pending_, of_most);
  if (!oldest->heard.passed()) {
    pause_ = oldest->heard;
    return false;
  }
  turn_away(*oldest, Reason::displaced,
            "it gave way to newer connections before it proved that it knows the secret");
  pending_.erase(oldest);
  return true;
}

void JobListener::serve(Pending& one, std::vector<Admitted>& admitted) {
  std::array<std::byte, 512> piece{};
  try {
    while (const std::size_t wanted = one.handshake.wanted()) {
      const std::size_t got =
          receive_some(one.socket, std::span(piece).first(std::min(wanted, piece.size())));
      if (got == 0) break;
      one.spoke = true;
      const std::vector<std::byte> answer = one.handshake.take(std::span(piece).first(got));
      // A new connection has room for it: whoever has none is no process of ours.
      if (!answer.empty()) send_all(one.socket, answer, Deadline::after(Seconds{}));
    }
  } catch (const SocketError&) {
    return turn_away(one, Reason::closed, "it closed without a proof that it knows the secret");
  } catch (const HandshakeError& error) {
    if (!error.reply.empty()) say_last(one.socket, error.reply);
    const auto first = int(Reason::other_protocol) - int(HandshakeFailure::other_protocol);
    return turn_away(one, Reason(first + int(error.failure)), error.what());
  }
  if (one.handshake.wanted() == 0) {
    one.over = true;
    admitted.push_back(
        {Channel(std::move(one.socket), one.handshake.keys()), one.handshake.peer()});
  } else if (one.deadline.passed()) {
    turn_away(one, Reason::silent,
              fmt::format("no proof that it knows the secret for {:.3g} s", limits_.hello.count()));
  }
}

void JobListener::turn_away(Pending& one, Reason reason, const std::string& why) {
  one.over = true;
  const bool first = std::ranges::all_of(counts_, [](std::int64_t n) { return n == 0; });
  ++counts_[std::size_t(reason)];
  if (!first || !warn_) return;
  const HostPort peer = one.socket.peer();
  warn_(fmt::format("a connection{} to {} was turned away: {}; others like it are counted",
                    peer.host.empty() ? "" : " from " + text(peer), text(address_), why));
}

std::string JobListener::turned_away() const {
  constexpr std::array<const char*, std::size_t(Reason::count)> kTexts{
      "said nothing in time",
      "closed without a proof",
      "gave way to newer ones",
      "spoke another protocol",
      "spoke another version",
      "looked for another process",
      "knew another secret (is --secret-file the same for all processes?)"};
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < counts_.size(); ++k)
    if (counts_[k] > 0) parts.push_back(fmt::format("{} {}", counts_[k], kTexts[k]));
  if (parts.empty()) return "";
  const auto all = std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
  return fmt::format("{} connection{} turned away: {}", all, all == 1 ? " was" : "s were",
                     fmt::join(parts, ", "));
}

}  // namespace reckon
