#include <arpa/inet.h>
#include <unistd.h>

#include <array>
#include <thread>

#include <fmt/format.h>

#include "executor/comm/channel.h"
#include "executor/comm/rendezvous/coordinator.h"
#include "executor/comm/rendezvous/rendezvous.h"
#include "sim/base/check.h"

// A member's way into the job, until all are there.
namespace reckon {

namespace {
std::string machine_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

bool is_numeric(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

/// For another program at the master's port to go.
Deadline patience_with_another(const RendezvousOptions& options) {
  constexpr double kShare = 0.25;
  return Deadline::after(options.deadline * kShare);
}

/// The process of the attempt before may still be on its way out.
Deadline patience_with_before(const RendezvousOptions& options) {
  const bool restarted = options.attempt > 0 || options.restarted;
  return restarted ? patience_with_another(options) : Deadline::after(Seconds{});
}

/// An address is listened at; a name may mean another address here than elsewhere (127.0.1.1 in
/// Debian's /etc/hosts) or a service in front of us, so there we listen where rank 0 was said to be
/// reached, else everywhere.
Socket listen_at_master(const RendezvousOptions& options) {
  HostPort at = options.master;
  if (!is_numeric(at.host) && at.host != "localhost") at.host = options.address;
  constexpr Seconds kPause = 50ms;
  const Deadline patience = patience_with_before(options);
  while (true) {
    try {
      return listen_on(at);
    } catch (const SocketError& error) {
      if (error.kind != SocketError::Kind::address_in_use) {
        if (at.host.empty()) throw CommError(error.what());
        at.host.clear();  // the address is not of this machine: translated on its way
      } else if (patience.passed()) {
        throw CommError(fmt::format(
            "port {} is in use: another job, or a process that an earlier run left; choose another "
            "MASTER_PORT, or end that process ({})",
            at.port, error.what()));
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
  }
}

std::string text_of(const Message& message) {
  return {reinterpret_cast<const char*>(message.payload.data()), message.payload.size()};
}
}  // namespace

std::unique_ptr<Membership> Membership::join(const RendezvousOptions& options,
                                             std::optional<Socket> listener) {
  RECKON_CHECK(options.size >= 1);
  RECKON_CHECK(options.rank >= 0 && options.rank < options.size);
  if (options.job.size() > kLongestJobName)
    throw CommError(fmt::format("the job's name has {} bytes; at most {} are allowed",
                                options.job.size(), kLongestJobName));
  if (options.rank == 0 && !listener) listener = listen_at_master(options);
  std::unique_ptr<Membership> membership;
  try {
    // It has its descriptors before strangers can come and take those that are left.
    membership.reset(new Membership(options));
    if (options.rank == 0) {
      auto [own, other] = channel_pair();
      membership->coordinator_ =
          std::make_unique<Coordinator>(std::move(*listener), options, std::move(other));
      membership->master_ = std::move(own);
    }
    membership->register_with_master();
  } catch (const SocketError& error) {
    throw CommError(fmt::format("rendezvous of job '{}': {}", options.job, error.what()), {0});
  } catch (const HandshakeError& error) {
    throw CommError(fmt::format("rendezvous of job '{}': {} answers, but {}", options.job,
                                text(options.master), error.what()),
                    {0});
  } catch (const WireError& error) {
    throw CommError(fmt::format("rendezvous of job '{}': {} answers, but {}; is MASTER_PORT right?",
                                options.job, text(options.master), error.what()),
                    {0});
  }
  return membership;
}

HostPort Membership::place_of_master() const {
  if (!coordinator_) return options_.master;
  HostPort master = coordinator_->address();
  if (master.host == "0.0.0.0") master.host = "127.0.0.1";
  if (master.host == "::") master.host = "::1";
  return master;
}

Channel Membership::connect_to_master(Deadline deadline) const {
  Channel channel =
      connect_to_process(place_of_master(), options_.secret, {Listening::As::coordinator, 0},
                         {options_.job, std::uint32_t(options_.rank)}, deadline);
  channel.socket().expect_acknowledgement_within(kRendezvousSilence);
  return channel;
}

/// Tells what this rank waits for, when that is due. Rank 0's coordinator tells for whom.
void Membership::say_waiting(const std::string& what, Deadline deadline) {
  if (!words_.due()) return;
  words_.said();
  if (options_.waiting && !coordinator_)
    options_.waiting(fmt::format("{}, trying for another {:.0f} s", what, deadline.left().count()));
}

/// Until the deadline; less where another program listens there and closes each connection: it may
/// be the attempt before, or a proxy in front of a rank 0 that is not up yet.
void Membership::find_master(Deadline deadline) {
  const Deadline patience = patience_with_another(options_);
  constexpr Seconds kPause = 100ms, kAlmost = 250ms;  // connect_to() ends a little sooner
  while (true) {
    try {
      master_ = connect_to_master(deadline.earlier(words_.next()));
      return;
    } catch (const SocketError& error) {
      if (dynamic_cast<const ClosedUnproved*>(&error) != nullptr && patience.passed())
        throw CommError(fmt::format("rendezvous of job '{}': {}", options_.job, error.what()), {0});
      if (deadline.left() <= kAlmost)
        throw CommError(
            fmt::format("rank 0 does not answer for {:.3g} s: {}{}; is it started, and are "
                        "MASTER_ADDR and MASTER_PORT those that it listens at?",
                        options_.deadline.count(), error.what(), word_before()),
            {0});
      std::this_thread::sleep_for(kPause);
      say_waiting(error.what(), deadline);
    }
  }
}

std::string Membership::word_before() const {
  return last_word_.empty() ? "" : fmt::format(" (before, it said: {})", last_word_);
}

Message Membership::say_hello(Deadline deadline) {
  if (!coordinator_) find_master(deadline);
  const std::string own = coordinator_ ? place_of_master().host : master_->socket().local().host;
  Hello hello{.attempt = options_.attempt, .size = options_.size, .settings = options_.settings};
  hello.mark.assign(reinterpret_cast<const char*>(mark_.data()), mark_.size());
  hello.member = {.rank = options_.rank,
                  .role = options_.role,
                  .address = {options_.address.empty() ? own : options_.address, options_.port},
                  .host = machine_name(),
                  .process = getpid()};
  send(RendezvousMessage::hello, encode(hello), deadline);
  // The coordinator names who is missing at the deadline: wait for its word a little longer.
  constexpr Seconds kForTheWord{2};
  const Deadline until = Deadline::after(deadline.left() + kForTheWord);
  while (!wait_readable(master_->socket(), until.earlier(words_.next())) && !until.passed())
    say_waiting(fmt::format("rank 0 at {} waits for others of the job", text(options_.master)),
                until);
  Message answer = receive_message(*master_, kRendezvousMessageLimit, until);
  if (RendezvousMessage(answer.head.kind) != RendezvousMessage::token) return answer;
  token_ = text_of(answer);
  return receive_message(*master_, kRendezvousMessageLimit, until);
}

void Membership::register_with_master() {
  const Deadline deadline = Deadline::after(options_.deadline);
  constexpr Seconds kPause = 100ms;
  while (true) {
    Message answer;
    try {
      answer = say_hello(deadline);
    } catch (const SocketError& error) {
      // Closed before rank 0 has answered: it had too many at once, ends, or is of the attempt
      // before.
      const bool closed = error.kind == SocketError::Kind::closed || error.cut;
      if (!closed || coordinator_ || !token_.empty() || deadline.left() <= kPause) throw;
      last_word_ = error.what();
      std::this_thread::sleep_for(kPause);
      say_waiting(last_word_, deadline);
      continue;
    }
    const auto kind = RendezvousMessage(answer.head.kind);
    if (kind == RendezvousMessage::members) {
      members_ = decode_members(answer.payload);
      watch_ = std::thread([this] { watch(); });
      return;
    }
    last_word_ = text_of(answer);
    if (kind == RendezvousMessage::differs)
      throw SettingsDiffer(fmt::format(
          "rank {} of job '{}' was started otherwise than rank 0: {}; all ranks need the same "
          "plan, options and data",
          options_.rank, options_.job, last_word_));
    if (kind != RendezvousMessage::not_yet || deadline.left() <= kPause)
      throw CommError(fmt::format("rendezvous of job '{}' at {}: {}", options_.job,
                                  text(options_.master), last_word_));
    std::this_thread::sleep_for(kPause);
    say_waiting(fmt::format("at {}: {}", text(options_.master), last_word_), deadline);
  }
}

}  // namespace reckon
