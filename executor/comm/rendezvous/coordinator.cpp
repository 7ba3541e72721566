#include "executor/comm/rendezvous/coordinator.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/check.h"

namespace reckon {

namespace {
constexpr Seconds kReplyDeadline{2};  // replies are small: who does not take one is gone

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

std::string process_of(const Member& member) {
  return fmt::format("rank {} (process {} on {})", member.rank, member.process, member.host);
}

Coordinator::Coordinator(Socket listener, const RendezvousOptions& options,
                         std::optional<Channel> own)
    : options_(options),
      deadline_(Deadline::after(options.deadline)),
      listener_(std::move(listener), options.secret, {Listening::As::coordinator, 0}, options.warn,
                JobListenerLimits::for_processes(options.size)),
      words_(options.quiet),
      wake_(wake_descriptor()),
      by_rank_(std::size_t(options.size)),
      vanished_(std::size_t(options.size)),
      turned_away_(std::size_t(options.size)) {
  if (own) connections_.push_back({.channel = std::move(*own), .peer = {options.job, 0}});
  thread_ = std::thread([this] { run(); });
}

Coordinator::~Coordinator() {
  const std::uint64_t one = 1;
  (void)!write(wake_.fd(), &one, sizeof one);
  thread_.join();
}

/// The process of rank 0 may be done before the others, who need the coordinator to their end.
bool Coordinator::needed() const {
  const bool all_told = !begun_ || lost_.has_value();
  if (stopped_ || (closing_ && (all_told || closing_->passed()))) return false;
  return !closing_ || keeps_seats() ||
         std::ranges::any_of(connections_, [](const Connection& c) { return c.member && !c.left; });
}

void Coordinator::run() {
  try {
    while (needed()) serve_once();
  } catch (const std::exception&) {
    // Out of descriptors or memory: closing all connections is the message.
  }
  for (Connection& connection : connections_) {
    if (closing_ && begun_ && !lost_ && connection.member && !connection.over)
      reply(connection, RendezvousMessage::over, std::string());
    connection.channel.socket().close();
  }
}

/// Negative: for ever.
int Coordinator::wait_milliseconds() const {
  int milliseconds = listener_.due_milliseconds();
  const auto wake_at = [&](const Deadline& deadline) {
    const int due = deadline.left_milliseconds();
    milliseconds = milliseconds < 0 ? due : std::min(milliseconds, due);
  };
  if (!begun_) wake_at(deadline_.earlier(words_.next()));
  if (closing_) wake_at(*closing_);
  for (const Seat& seat : seats_)
    if (seat.kept_until) wake_at(*seat.kept_until);
  for (const Connection& c : connections_)
    if (c.asks) wake_at(*c.asks);
  return milliseconds;
}

void Coordinator::serve_once() {
  std::vector<pollfd> waits{{wake_.fd(), POLLIN, 0}};
  for (const Connection& c : connections_) waits.push_back({c.channel.socket().fd(), POLLIN, 0});
  listener_.add_to(waits);
  if (poll(waits.data(), waits.size(), wait_milliseconds()) < 0) return;  // a signal
  if (waits[0].revents != 0) {
    constexpr Seconds kForTheOthers{2};
    closing_ = Deadline::after(kForTheOthers);
    std::uint64_t count = 0;
    (void)!read(wake_.fd(), &count, sizeof count);
    return;
  }
  std::size_t i = 1;
  for (Connection& c : connections_) {
    if (waits[i++].revents != 0 && !c.over) receive(c);
  }
  connections_.remove_if([](const Connection& c) { return c.over; });
  for (JobListener::Admitted& one : listener_.admit()) {
    one.channel.socket().expect_acknowledgement_within(kRendezvousSilence);
    connections_.push_back({.channel = std::move(one.channel), .peer = std::move(one.peer)});
  }
  end_grace();
  answer_blame();
  if (!begun_ && words_.due()) say_waiting();
  if (!begun_ && !stopped_ && deadline_.passed()) give_up(missing());
}

void Coordinator::receive(Connection& from) {
  try {
    for (const Message& message : from.reader.read(from.channel)) {
      handle(from, message);
      if (from.over) return;
    }
  } catch (const SocketError& error) {
    end(from, error.cut || !from.cut.empty(), from.cut.empty() ? error.what() : from.cut);
  } catch (const std::runtime_error& error) {  // no member of ours
    end(from, false, error.what());
  }
}

void Coordinator::handle(Connection& from, const Message& message) {
  const auto kind = RendezvousMessage(message.head.kind);
  if (kind == RendezvousMessage::hello && !from.member) {
    handle_hello(from, decode_hello(message.payload));
    return;
  }
  if (kind == RendezvousMessage::back && !from.member) {
    handle_return(from, decode_return(message.payload));
    return;
  }
  if (!from.member) throw WireError("a message before a hello");
  FieldReader fields{message.payload};
  if (kind == RendezvousMessage::set) {
    const std::string key = fields.text(), value = fields.text();
    store_[key] = value;
    for (Connection& c : connections_)
      if (c.awaits == key) give_value(c, key, value);
    reply(from, RendezvousMessage::stored, std::string());
  } else if (kind == RendezvousMessage::get) {
    const std::string key = fields.text();
    const auto found = store_.find(key);
    if (found == store_.end())
      from.awaits = key;
    else
      give_value(from, key, found->second);
  } else if (kind == RendezvousMessage::ask_blame) {
    constexpr std::int64_t kMostMilliseconds = 3'600'000;
    const auto wait = std::clamp<std::int64_t>(fields.number(), 0, kMostMilliseconds);
    if (lost_) return reply(from, RendezvousMessage::lost, encode(*lost_));
    from.asks = Deadline::after(std::chrono::milliseconds(wait));
    for (Seat& seat : seats_)
      if (seat.kept_until) seat.kept_until = seat.kept_until->earlier(Deadline::after(grace()));
  } else if (kind == RendezvousMessage::leave) {
    from.left = true;
  } else {
    throw WireError("a message that only the coordinator sends");
  }
}

void Coordinator::give_value(Connection& to, const std::string& key, const std::string& value) {
  to.awaits.reset();
  FieldWriter fields;
  fields.text(key).text(value);
  reply(to, RendezvousMessage::value, fields.bytes());
}

void Coordinator::refuse(Connection& from, RendezvousMessage kind, const std::string& why) {
  reply(from, kind, why);
  from.over = true;
}

/// Whoever shows the rank's token is its process. Its old connection may not have ended here yet.
void Coordinator::handle_return(Connection& from, const Return& back) {
  const std::size_t rank = from.peer.rank;
  const bool ours = from.peer.job == options_.job && back.attempt == options_.attempt &&
                    rank < seats_.size() && back.token.size() == sizeof(Nonce) &&
                    same_bytes(bytes_of(back.token), seats_[rank].token);
  if (!ours)
    return refuse(from, RendezvousMessage::refused,
                  fmt::format("rank {} of this start of the job is another process", rank));
  if (Connection* old = std::exchange(by_rank_[rank], &from)) {
    old->member.reset();
    old->over = true;
  }
  Seat& seat = seats_[rank];
  seat.kept_until.reset();
  from.member = seat.member;
  reply(from, RendezvousMessage::welcome, std::string());
  if (lost_) return reply(from, RendezvousMessage::lost, encode(*lost_));
  if (options_.warn) options_.warn(fmt::format("{} is back", process_of(seat.member)));
}

void Coordinator::end(Connection& gone, bool cut, const std::string& why) {
  gone.over = true;
  if (!gone.member) return;
  const int rank = gone.member->rank;
  by_rank_[std::size_t(rank)] = nullptr;
  if (!begun_)
    vanished_[std::size_t(rank)] = true;
  else if (!gone.left && cut && !lost_)
    keep_seat(seats_[std::size_t(rank)], why);
  else if (!gone.left)
    declare_lost({rank});
}

void Coordinator::keep_seat(Seat& seat, const std::string& why) {
  seat.kept_until = Deadline::after(grace());
  if (!options_.warn) return;
  const bool servers = std::ranges::any_of(
      seats_, [](const Seat& s) { return s.member.role == Role::parameter_server; });
  const std::string hope =
      servers ? fmt::format(
                    "lost unless it is back at rank 0 within {:.3g} s, and where it has lost "
                    "a parameter server too, which has no way back",
                    grace().count())
              : fmt::format("it may come back within {:.3g} s", grace().count());
  options_.warn(fmt::format("{}: {}; {}", process_of(seat.member), why, hope));
}

Seconds Coordinator::grace() const {
  const bool missed =
      std::ranges::any_of(connections_, [](const Connection& c) { return c.asks && !c.over; });
  return missed ? std::min(options_.grace, kGraceWhenMissed) : options_.grace;
}

bool Coordinator::keeps_seats() const {
  return std::ranges::any_of(seats_, [](const Seat& s) { return s.kept_until.has_value(); });
}

void Coordinator::end_grace() {
  std::vector<int> absent;
  for (const Seat& seat : seats_) {
    if (!seat.kept_until || !seat.kept_until->passed()) continue;
    absent.push_back(seat.member.rank);
    if (options_.warn) options_.warn(fmt::format("{} did not come back", process_of(seat.member)));
  }
  if (!absent.empty()) declare_lost(absent);
}

void Coordinator::declare_lost(const std::vector<int>& ranks) {
  if (lost_) return;  // the first is the cause, those after it its consequences
  lost_ = ranks;
  for (Seat& seat : seats_) seat.kept_until.reset();
  for (Connection& c : connections_)
    if (c.member && !c.over) reply(c, RendezvousMessage::lost, encode(ranks));
}

void Coordinator::answer_blame() {
  const bool due = std::ranges::any_of(
      connections_, [](const Connection& c) { return c.asks && c.asks->passed(); });
  if (!due) return;
  std::vector<int> silent;
  for (const Connection* c : by_rank_)
    if (c != nullptr && !c->left && !c->asks) silent.push_back(c->member->rank);
  for (const Seat& seat : seats_)
    if (seat.kept_until) silent.push_back(seat.member.rank);
  if (!silent.empty()) declare_lost(silent);
  for (Connection& c : connections_) {
    if (!c.asks || !c.asks->passed()) continue;
    c.asks.reset();  // who was told of a loss has its answer
    if (!lost_) reply(c, RendezvousMessage::nobody, std::string());
  }
}

void Coordinator::reply(Connection& to, RendezvousMessage kind,
                        std::span<const std::byte> payload) {
  try {
    send_message(to.channel, std::uint16_t(kind), 0, 0, payload, Deadline::after(kReplyDeadline));
  } catch (const SocketError& error) {
    if (error.cut) to.cut = error.what();  // its end is read by receive()
  }
}
void Coordinator::reply(Connection& to, RendezvousMessage kind, const std::string& text) {
  reply(to, kind, bytes_of(text));
}

}  // namespace reckon
