#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/comm/crypto.h"
#include "executor/comm/rendezvous/handshake.h"
#include "executor/comm/socket.h"

// Messages between processes of one job that have proved it (executor/comm/rendezvous/handshake.h):
// a header of fixed size with magic, version, length and authentication tags, then a payload.
// Little-endian. A tag is AES-256-GMAC under the key of the connection's direction and the
// message's number, so a message that is damaged, changed, left out, repeated or sent back is an
// error. Nothing is encrypted. What breaks the rules throws WireError; no length that a peer names
// is believed beyond the limit that the reader gives.
namespace reckon {

class WireError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct MessageHead {
  std::uint16_t kind = 0;    // its meaning belongs to the protocol that uses this
  std::uint32_t sender = 0;  // rank
  std::uint64_t tag = 0;     // step, range, sequence: the protocol's
  std::uint64_t length = 0;  // of the payload, bytes
  std::uint64_t number = 0;  // in its direction, from 0; not sent
  Tag payload_tag{};
};
inline constexpr std::size_t kMessageHeadSize = 64;

/// The bytes of a message's header. `mac` is that of the direction, `number` the message's.
std::array<std::byte, kMessageHeadSize> encode_head(Gmac& mac, std::uint64_t number,
                                                    std::uint16_t kind, std::uint32_t sender,
                                                    std::uint64_t tag,
                                                    std::span<const std::byte> payload);
/// Of at least kMessageHeadSize bytes.
MessageHead decode_head(Gmac& mac, std::uint64_t number, std::span<const std::byte> bytes,
                        std::uint64_t limit);
void check_payload(Gmac& mac, const MessageHead& head, std::span<const std::byte> payload);

/// A connection between two processes of a job. One thread sends at a time, one receives.
class Channel {
 public:
  Channel(Socket socket, const ChannelKeys& keys)
      : socket_(std::move(socket)), send_(keys.send), receive_(keys.receive) {}
  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }

 private:
  friend void send_message(Channel&, std::uint16_t, std::uint32_t, std::uint64_t,
                           std::span<const std::byte>, Deadline);
  friend MessageHead receive_head(Channel&, std::uint64_t, Deadline);
  friend void receive_payload(Channel&, const MessageHead&, std::span<std::byte>, Deadline);
  friend class MessageReader;

  Socket socket_;
  Gmac send_, receive_;
  std::uint64_t sent_ = 0, received_ = 0;  // messages
};

struct Message {
  MessageHead head;
  std::vector<std::byte> payload;
};

void send_message(Channel& to, std::uint16_t kind, std::uint32_t sender, std::uint64_t tag,
                  std::span<const std::byte> payload, Deadline deadline);
/// The header; its payload of at most `limit` bytes follows on the socket.
MessageHead receive_head(Channel& from, std::uint64_t limit, Deadline deadline);
/// The payload of `head`, whose length payload.size() must be.
void receive_payload(Channel& from, const MessageHead& head, std::span<std::byte> payload,
                     Deadline deadline);
Message receive_message(Channel& from, std::uint64_t limit, Deadline deadline);

/// Whole messages out of bytes that arrive in pieces, for one thread that serves many sockets.
class MessageReader {
 public:
  explicit MessageReader(std::uint64_t limit) : limit_(limit) {}
  /// Reads some of what the connection has; returns the messages that are complete. Throws
  /// SocketError (closed) only when it ended and no message is left to return.
  std::vector<Message> read(Channel& from);
  /// The same of bytes that have arrived: what is complete is checked by `mac`.
  std::vector<Message> take(Gmac& mac, std::span<const std::byte> bytes);

 private:
  std::uint64_t limit_, number_ = 0;
  std::optional<MessageHead> head_;  // of the message that arrives
  std::vector<std::byte> bytes_;
};

/// Payloads of several fields.
class FieldWriter {
 public:
  FieldWriter& number(std::int64_t value);
  FieldWriter& text(std::string_view value);  // also raw bytes
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : left_(bytes) {}
  std::int64_t number();
  std::string text();

 private:
  std::span<const std::byte> take(std::size_t count);
  std::span<const std::byte> left_;
};

}  // namespace reckon
