#include "executor/comm/wire.h"

#include <array>
#include <bit>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "sim/base/check.h"

namespace reckon {

namespace {
static_assert(std::endian::native == std::endian::little, "messages are little-endian");

/// As it stands on the wire; no padding.
struct RawHead {
  std::uint32_t magic = kProtocolMagic;
  std::uint16_t version = kProtocolVersion;
  std::uint16_t kind = 0;
  std::uint32_t sender = 0;
  std::uint32_t unused = 0;
  std::uint64_t tag = 0, length = 0;
  Tag payload_tag{}, head_tag{};  // the head's: of all before it
};
static_assert(sizeof(RawHead) == kMessageHeadSize);

constexpr std::uint32_t kHeadPart = 0, kPayloadPart = 1;

Tag tag_of_head(Gmac& mac, std::uint64_t number, const RawHead& raw) {
  const auto bytes = std::as_bytes(std::span(&raw, 1));
  return mac.tag(number, kHeadPart, bytes.first(offsetof(RawHead, head_tag)));
}
}  // namespace

std::array<std::byte, kMessageHeadSize> encode_head(Gmac& mac, std::uint64_t number,
                                                    std::uint16_t kind, std::uint32_t sender,
                                                    std::uint64_t tag,
                                                    std::span<const std::byte> payload) {
  RawHead raw;
  raw.kind = kind;
  raw.sender = sender;
  raw.tag = tag;
  raw.length = payload.size();
  if (!payload.empty()) raw.payload_tag = mac.tag(number, kPayloadPart, payload);
  raw.head_tag = tag_of_head(mac, number, raw);
  return std::bit_cast<std::array<std::byte, kMessageHeadSize>>(raw);
}

MessageHead decode_head(Gmac& mac, std::uint64_t number, std::span<const std::byte> bytes,
                        std::uint64_t limit) {
  RawHead raw;
  RECKON_CHECK(bytes.size() >= sizeof raw);
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != kProtocolMagic) throw WireError("what arrived is no message of reckon");
  if (raw.version != kProtocolVersion)
    throw WireError(fmt::format("message of protocol version {}; this program speaks {}",
                                raw.version, kProtocolVersion));
  if (!same_bytes(raw.head_tag, tag_of_head(mac, number, raw)))
    throw WireError("message header is damaged or forged");
  if (raw.length > limit)
    throw WireError(fmt::format("message of {} bytes; at most {} are expected", raw.length, limit));
  return {.kind = raw.kind,
          .sender = raw.sender,
          .tag = raw.tag,
          .length = raw.length,
          .number = number,
          .payload_tag = raw.payload_tag};
}

void check_payload(Gmac& mac, const MessageHead& head, std::span<const std::byte> payload) {
  if (payload.empty()) return;
  if (!same_bytes(mac.tag(head.number, kPayloadPart, payload), head.payload_tag))
    throw WireError(fmt::format("message of {} bytes is damaged or forged", payload.size()));
}

void send_message(Channel& to, std::uint16_t kind, std::uint32_t sender, std::uint64_t tag,
                  std::span<const std::byte> payload, Deadline deadline) {
  const auto head = encode_head(to.send_, to.sent_++, kind, sender, tag, payload);
  send_all(to.socket_, head, payload, deadline);
}

MessageHead receive_head(Channel& from, std::uint64_t limit, Deadline deadline) {
  std::array<std::byte, kMessageHeadSize> bytes{};
  receive_all(from.socket_, bytes, deadline);
  return decode_head(from.receive_, from.received_++, bytes, limit);
}

void receive_payload(Channel& from, const MessageHead& head, std::span<std::byte> payload,
                     Deadline deadline) {
  RECKON_CHECK(payload.size() == head.length);
  receive_all(from.socket_, payload, deadline);
  check_payload(from.receive_, head, payload);
}

Message receive_message(Channel& from, std::uint64_t limit, Deadline deadline) {
  Message message;
  message.head = receive_head(from, limit, deadline);
  message.payload.resize(message.head.length);
  receive_payload(from, message.head, message.payload, deadline);
  return message;
}

std::vector<Message> MessageReader::read(Channel& from) {
  std::array<std::byte, 16384> piece{};
  std::size_t got = 0;
  std::exception_ptr end;
  try {
    got = receive_some(from.socket_, piece);
  } catch (const SocketError&) {
    end = std::current_exception();
  }
  std::vector<Message> messages = take(from.receive_, std::span(piece).first(got));
  if (end && messages.empty()) std::rethrow_exception(end);
  return messages;
}

std::vector<Message> MessageReader::take(Gmac& mac, std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  std::vector<Message> messages;
  std::span<const std::byte> left = bytes_;
  while (left.size() >= kMessageHeadSize) {
    if (!head_) head_ = decode_head(mac, number_, left, limit_);
    if (left.size() - kMessageHeadSize < head_->length) break;
    const auto payload = left.subspan(kMessageHeadSize, head_->length);
    check_payload(mac, *head_, payload);
    messages.push_back({*head_, {payload.begin(), payload.end()}});
    left = left.subspan(kMessageHeadSize + head_->length);
    head_.reset();
    ++number_;
  }
  bytes_.erase(bytes_.begin(), bytes_.end() - std::ptrdiff_t(left.size()));
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
