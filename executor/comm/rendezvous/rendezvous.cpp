#include "executor/comm/rendezvous/rendezvous.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/comm/channel.h"
#include "executor/comm/rendezvous/coordinator.h"
#include "sim/base/check.h"

namespace reckon {

Membership::Membership(RendezvousOptions options)
    : options_(std::move(options)), words_(options_.quiet), wake_(wake_descriptor()) {}

Membership::~Membership() {
  ends_ = true;
  wake_watch();
  if (watch_.joinable()) watch_.join();
  try {
    const bool failed = std::uncaught_exceptions() > 0;
    if (master_ && !members_.empty() && !failed)
      send(RendezvousMessage::leave, {}, Deadline::after(100ms));
  } catch (const std::exception&) {
    // The other side is gone; so are we.
  }
}

void Membership::send(RendezvousMessage kind, std::span<const std::byte> payload,
                      Deadline deadline) {
  send_message(*master_, std::uint16_t(kind), std::uint32_t(options_.rank), 0, payload, deadline);
}

/// The next message that is not the news of a loss, which is kept. The caller holds the mutex.
Message Membership::next_message(Deadline deadline) {
  Message message = receive_message(*master_, kRendezvousMessageLimit, deadline);
  if (RendezvousMessage(message.head.kind) == RendezvousMessage::lost)
    know_lost(decode_ranks(message.payload));
  return message;
}

/// The caller holds the mutex.
void Membership::know_lost(std::vector<int> ranks) {
  lost_ = std::move(ranks);
  wake_watch();
}

void Membership::wake_watch() {
  const std::uint64_t one = 1;
  (void)!write(wake_.fd(), &one, sizeof one);
}

void Membership::on_loss(std::function<void()> act) {
  const std::lock_guard lock(acts_mutex_);
  if (acted_) return act();
  acts_.push_back(std::move(act));
}

bool Membership::knows_loss() {
  const std::lock_guard lock(mutex_);
  return lost_.has_value();
}

std::optional<CommError> Membership::loss() {
  const std::lock_guard lock(mutex_);
  if (!lost_) return std::nullopt;
  std::vector<std::string> names;
  for (const int rank : *lost_) names.push_back(name_of(rank));
  return CommError(
      fmt::format("{} {} lost", fmt::join(names, ", "), names.size() == 1 ? "is" : "are"), *lost_);
}

/// Until a rank is lost: what comes while nobody has asked is the news of that, the end of rank 0,
/// or a cut. Who has asked holds the mutex until the answer is read.
void Membership::watch() {
  while (true) {
    std::unique_lock lock(mutex_);
    std::array<pollfd, 2> waits{{{wake_.fd(), POLLIN, 0}, {master_->socket().fd(), POLLIN, 0}}};
    lock.unlock();
    if (poll(waits.data(), waits.size(), -1) < 0) continue;  // a signal
    lock.lock();
    std::uint64_t count = 0;
    (void)!read(wake_.fd(), &count, sizeof count);
    if (lost_) break;
    if (ends_ || !read_unasked()) return;
  }
  const std::lock_guard lock(acts_mutex_);
  acted_ = true;
  for (const auto& act : acts_) act();
}

/// False: rank 0 is done, so no news will come.
bool Membership::read_unasked() {
  constexpr Seconds kForTheRest{2};
  if (!wait_readable(master_->socket(), Deadline::after(Seconds{}))) return true;
  try {
    const Message message = next_message(Deadline::after(kForTheRest));
    return RendezvousMessage(message.head.kind) != RendezvousMessage::over;
  } catch (const SocketError& error) {
    if (!error.cut || !come_back()) know_lost({0});
  } catch (const std::runtime_error&) {  // damaged
    know_lost({0});
  }
  return true;
}

/// Once more to the rendezvous, where the network has cut the connection; false: rank 0 is lost.
/// The caller holds the mutex.
bool Membership::come_back() {
  constexpr Seconds kPause = 100ms;
  const Deadline grace = Deadline::after(options_.grace);
  std::optional<Deadline> when_missed;  // somebody asks
  while (!ends_ && !token_.empty()) {
    try {
      return try_to_come_back();
    } catch (const SocketError& error) {
      if (asks_ && !when_missed) when_missed = Deadline::after(kGraceWhenMissed);
      const Deadline until = when_missed ? grace.earlier(*when_missed) : grace;
      // Refused: nobody listens there, the process of rank 0 is gone.
      if (error.kind == SocketError::Kind::refused || until.left() <= kPause) return false;
    } catch (const std::runtime_error&) {  // another listens there
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

bool Membership::try_to_come_back() {
  constexpr Seconds kOneTry{2};
  const Deadline deadline = Deadline::after(std::min(options_.grace, kOneTry));
  Channel again = connect_to_master(deadline);
  // Where no welcome comes in time, rank 0 may have let it in all the same: cut off once more.
  again.socket().reset_at_close(true);
  send_message(again, std::uint16_t(RendezvousMessage::back), std::uint32_t(options_.rank), 0,
               encode(Return{options_.attempt, token_}), deadline);
  const Message answer = receive_message(again, kRendezvousMessageLimit, deadline);
  if (RendezvousMessage(answer.head.kind) != RendezvousMessage::welcome) return false;
  again.socket().reset_at_close(false);
  master_ = std::move(again);
  wake_watch();
  return true;
}

/// The answer of that kind; nullopt: a rank is lost. `fits`: it is not that to a question whose
/// deadline has passed. What was asked on a connection that the network cut is asked again, so it
/// must do no harm twice. The caller holds the mutex.
std::optional<Message> Membership::ask(RendezvousMessage question,
                                       std::span<const std::byte> payload, RendezvousMessage answer,
                                       Deadline deadline,
                                       const std::function<bool(const Message&)>& fits) {
  while (true) {
    const Seconds whole = deadline.left();
    // A broken connection may still hold the news of a loss: read on after a failed send.
    std::optional<SocketError> unsent;
    try {
      send(question, payload, deadline);
    } catch (const SocketError& error) {
      unsent = error;
    }
    try {
      while (!lost_) {
        Message message = next_message(deadline);
        if (RendezvousMessage(message.head.kind) == answer && (!fits || fits(message)))
          return message;
      }
      return std::nullopt;
    } catch (const SocketError& error) {
      const SocketError& first = unsent ? *unsent : error;
      // Rank 0 counts the time for the answer to a question of blame anew; others wait no longer.
      const Seconds left = question == RendezvousMessage::ask_blame ? whole : deadline.left();
      if (!first.cut || !come_back()) throw SocketError(first);
      deadline = Deadline::after(left);
    }
  }
}

void Membership::set(const std::string& key, std::span<const std::byte> value) {
  const std::lock_guard lock(mutex_);
  FieldWriter fields;
  fields.text(key).text({reinterpret_cast<const char*>(value.data()), value.size()});
  try {
    (void)ask(RendezvousMessage::set, fields.bytes(), RendezvousMessage::stored,
              Deadline::after(options_.deadline));
  } catch (const SocketError& error) {
    throw CommError(fmt::format("rank 0 is lost: {}", error.what()), {0});
  } catch (const WireError& error) {
    throw CommError(fmt::format("rank 0: {}", error.what()), {0});
  }
}

std::vector<std::byte> Membership::get(const std::string& key, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  FieldWriter fields;
  fields.text(key);
  try {
    const auto is_of_key = [&](const Message& message) {
      return FieldReader(message.payload).text() == key;
    };
    if (const auto message = ask(RendezvousMessage::get, fields.bytes(), RendezvousMessage::value,
                                 deadline, is_of_key)) {
      FieldReader answer(message->payload);
      answer.text();  // the key
      const std::string value = answer.text();
      const auto bytes = std::as_bytes(std::span(value));
      return {bytes.begin(), bytes.end()};
    }
  } catch (const SocketError& error) {
    if (error.kind == SocketError::Kind::timeout)
      throw CommError(fmt::format("nobody has set '{}' in time", key));
    throw CommError(fmt::format("rank 0 is lost: {}", error.what()), {0});
  } catch (const WireError& error) {
    throw CommError(fmt::format("rank 0: {}", error.what()), {0});
  }
  throw CommError(fmt::format("{} is lost", name_of(lost_->front())), *lost_);
}

std::vector<int> Membership::blame(Seconds grace) {
  asks_ = true;  // before the watch has given the mutex back: it may be trying to come back
  const std::lock_guard lock(mutex_);
  if (lost_) return *lost_;
  constexpr Seconds kForTheAnswer{1};
  try {
    FieldWriter fields;
    fields.number(std::int64_t(grace.count() * 1e3));
    if (ask(RendezvousMessage::ask_blame, fields.bytes(), RendezvousMessage::nobody,
            Deadline::after(grace + kForTheAnswer))) {
      asks_ = false;
      return {};
    }
  } catch (const std::runtime_error&) {  // closed, silent or damaged
    know_lost({0});
  }
  return *lost_;
}

std::string Membership::name_of(int rank) const {
  if (rank < 0 || std::size_t(rank) >= members_.size()) return fmt::format("rank {}", rank);
  const Member& m = members_[std::size_t(rank)];
  return fmt::format("rank {} ({} on {}, process {})", rank,
                     m.role == Role::parameter_server ? "parameter server" : "worker", m.host,
                     m.process);
}

CommError Membership::lost_peer(const std::string& what, Seconds grace) {
  const std::vector<int> ranks = blame(grace);
  if (ranks.empty()) return CommError(what);
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(name_of(rank));
  return CommError(fmt::format("{}: lost or without an answer: {}", what, fmt::join(names, ", ")),
                   ranks);
}

}  // namespace reckon
