#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/comm/socket.h"

// Messages between reckon's own processes: a header of fixed size with magic, version, length and
// checksums, then a payload. Little-endian. What breaks the rules throws WireError; no length that
// a peer names is believed beyond the limit that the reader gives.
namespace reckon {

class WireError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct MessageHead {
  std::uint16_t kind = 0;      // its meaning belongs to the protocol that uses this
  std::uint32_t sender = 0;    // rank
  std::uint64_t tag = 0;       // step, range, sequence: the protocol's
  std::uint64_t length = 0;    // of the payload, bytes
  std::uint64_t checksum = 0;  // XXH3-64 of the payload
};
inline constexpr std::size_t kMessageHeadSize = 48;

struct Message {
  MessageHead head;
  std::vector<std::byte> payload;
};

void send_message(const Socket& socket, std::uint16_t kind, std::uint32_t sender, std::uint64_t tag,
                  std::span<const std::byte> payload, Deadline deadline);
/// The header; its payload of at most `limit` bytes follows on the socket.
MessageHead receive_head(const Socket& socket, std::uint64_t limit, Deadline deadline);
/// The payload of `head`, whose length payload.size() must be.
void receive_payload(const Socket& socket, const MessageHead& head, std::span<std::byte> payload,
                     Deadline deadline);
Message receive_message(const Socket& socket, std::uint64_t limit, Deadline deadline);

/// Whole messages out of bytes that arrive in pieces, for one thread that serves many sockets.
class MessageReader {
 public:
  explicit MessageReader(std::uint64_t limit) : limit_(limit) {}
  /// Reads some of what the socket has; returns the messages that are complete. Throws SocketError
  /// (closed) only when the socket ended and no message is left to return.
  std::vector<Message> read(const Socket& socket);

 private:
  std::uint64_t limit_;
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
