#include "executor/comm/channel.h"

#include <fmt/format.h>

#include <array>
#include <thread>

namespace reckon {

namespace {
Channel shake_hands(Socket socket, const JobSecret& secret, const Listening& other,
                    const Connecting& self, Deadline deadline) {
  ConnectorHandshake handshake(secret, other, self, random_nonce());
  send_all(socket, handshake.hello(), deadline);
  std::array<std::byte, 128> piece{};
  while (handshake.wanted() > 0) {
    const auto next = std::span(piece).first(std::min(piece.size(), handshake.wanted()));
    receive_all(socket, next, deadline);
    try {
      const std::vector<std::byte> answer = handshake.take(next);
      if (!answer.empty()) send_all(socket, answer, deadline);
    } catch (const HandshakeError& error) {
      if (!error.reply.empty()) send_all(socket, error.reply, deadline);
      throw;
    }
  }
  return Channel(std::move(socket), handshake.keys());
}
}  // namespace

Channel connect_to_process(const HostPort& address, const JobSecret& secret, const Listening& other,
                           const Connecting& self, Deadline deadline) {
  if (self.job.size() > kLongestJobName)
    throw WireError(fmt::format("the job's name has {} bytes; at most {} are allowed",
                                self.job.size(), kLongestJobName));
  constexpr int kTries = 6;
  constexpr Seconds kToComeBack{5};  // who closed a connection is there, or gone for good
  Seconds pause = 50ms;
  Deadline until = deadline;
  for (int tries = 1;; ++tries) {
    Socket socket = connect_to(address, until);
    try {
      return shake_hands(std::move(socket), secret, other, self, deadline);
    } catch (const SocketError& error) {
      if (error.kind != SocketError::Kind::closed || deadline.left() <= pause) throw;
      if (tries == kTries)
        throw ClosedUnproved(
            fmt::format("{} closes the connection before it proves that it knows the job's "
                        "secret: another program, or another version of reckon",
                        text(address)));
    }
    std::this_thread::sleep_for(pause);
    pause *= 2;
    until = deadline.earlier(Deadline::after(kToComeBack));
  }
}

std::pair<Channel, Channel> channel_pair() {
  auto [one, other] = socket_pair();
  const Key there = random_nonce(), back = random_nonce();
  return {Channel(std::move(one), {.send = there, .receive = back}),
          Channel(std::move(other), {.send = back, .receive = there})};
}

}  // namespace reckon
