#include "executor/comm/wire.h"

#include <array>
#include <bit>
#include <cstring>
#include <exception>

#include <fmt/format.h>
#include <xxhash.h>

#include "sim/base/check.h"

namespace reckon {

namespace {
static_assert(std::endian::native == std::endian::little, "messages are little-endian");

constexpr std::uint32_t kMagic = 0x4e4b4352;  // "RCKN"
constexpr std::uint16_t kVersion = 1;

/// As it stands on the wire; no padding.
struct RawHead {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t kind = 0;
  std::uint32_t sender = 0;
  std::uint32_t unused = 0;
  std::uint64_t tag = 0, length = 0, checksum = 0;
  std::uint64_t head_checksum = 0;  // of all before it
};
static_assert(sizeof(RawHead) == kMessageHeadSize);

std::uint64_t head_checksum(const RawHead& raw) {
  return XXH3_64bits(&raw, offsetof(RawHead, head_checksum));
}

MessageHead checked(std::span<const std::byte> bytes, std::uint64_t limit) {
  RawHead raw;
  RECKON_CHECK(bytes.size() >= sizeof raw);
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != kMagic) throw WireError("what arrived is no message of reckon");
  if (raw.version != kVersion)
    throw WireError(fmt::format("message of protocol version {}; this program speaks {}",
                                raw.version, kVersion));
  if (raw.head_checksum != head_checksum(raw)) throw WireError("message header is damaged");
  if (raw.length > limit)
    throw WireError(fmt::format("message of {} bytes; at most {} are expected", raw.length, limit));
  return {.kind = raw.kind,
          .sender = raw.sender,
          .tag = raw.tag,
          .length = raw.length,
          .checksum = raw.checksum};
}

void check_payload(const MessageHead& head, std::span<const std::byte> payload) {
  if (XXH3_64bits(payload.data(), payload.size()) != head.checksum)
    throw WireError(fmt::format("message of {} bytes is damaged", payload.size()));
}
}  // namespace

void send_message(const Socket& socket, std::uint16_t kind, std::uint32_t sender, std::uint64_t tag,
                  std::span<const std::byte> payload, Deadline deadline) {
  RawHead raw;
  raw.kind = kind;
  raw.sender = sender;
  raw.tag = tag;
  raw.length = payload.size();
  raw.checksum = XXH3_64bits(payload.data(), payload.size());
  raw.head_checksum = head_checksum(raw);
  send_all(socket, std::as_bytes(std::span(&raw, 1)), payload, deadline);
}

MessageHead receive_head(const Socket& socket, std::uint64_t limit, Deadline deadline) {
  std::array<std::byte, kMessageHeadSize> bytes{};
  receive_all(socket, bytes, deadline);
  return checked(bytes, limit);
}

void receive_payload(const Socket& socket, const MessageHead& head, std::span<std::byte> payload,
                     Deadline deadline) {
  RECKON_CHECK(payload.size() == head.length);
  receive_all(socket, payload, deadline);
  check_payload(head, payload);
}

Message receive_message(const Socket& socket, std::uint64_t limit, Deadline deadline) {
  Message message;
  message.head = receive_head(socket, limit, deadline);
  message.payload.resize(message.head.length);
  receive_payload(socket, message.head, message.payload, deadline);
  return message;
}

std::vector<Message> MessageReader::read(const Socket& socket) {
  std::array<std::byte, 16384> piece{};
  std::vector<Message> messages;
  std::exception_ptr end;
  try {
    const std::size_t got = receive_some(socket, piece);
    bytes_.insert(bytes_.end(), piece.begin(), piece.begin() + std::ptrdiff_t(got));
  } catch (const SocketError&) {
    end = std::current_exception();
  }
  std::span<const std::byte> left = bytes_;
  while (left.size() >= kMessageHeadSize) {
    const MessageHead head = checked(left, limit_);
    if (left.size() - kMessageHeadSize < head.length) break;
    const auto payload = left.subspan(kMessageHeadSize, head.length);
    check_payload(head, payload);
    messages.push_back({head, {payload.begin(), payload.end()}});
    left = left.subspan(kMessageHeadSize + head.length);
  }
  bytes_.erase(bytes_.begin(), bytes_.end() - std::ptrdiff_t(left.size()));
  if (end && messages.empty()) std::rethrow_exception(end);
  return messages;
}

FieldWriter& FieldWriter::number(std::int64_t value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  return *this;
}
FieldWriter& FieldWriter::text(std::string_view value) {
  number(std::int64_t(value.size()));
  const auto raw = std::as_bytes(std::span(value));
  bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  return *this;
}

std::span<const std::byte> FieldReader::take(std::size_t count) {
  if (count > left_.size()) throw WireError("message ends inside a field");
  const auto taken = left_.first(count);
  left_ = left_.subspan(count);
  return taken;
}
std::int64_t FieldReader::number() {
  std::int64_t value = 0;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}
std::string FieldReader::text() {
  const std::int64_t length = number();
  if (length < 0) throw WireError("message with a field of negative length");
  const auto raw = take(std::size_t(length));
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

}  // namespace reckon
