#include "executor/comm/rendezvous/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "sim/base/check.h"

namespace reckon {

namespace {
static_assert(std::endian::native == std::endian::little, "messages are little-endian");

enum class Kind : std::uint16_t { hello = 0x4801, challenge, proof, refused };

// As they stand on the wire; no padding.
struct Beginning {
  std::uint32_t magic = kProtocolMagic;
  std::uint16_t version = kProtocolVersion;
  Kind kind{};
};
struct HelloMessage {
  Beginning beginning{.kind = Kind::hello};
  Listening::As as{};
  std::uint16_t job_length = 0;
  std::uint32_t listener_rank = 0, rank = 0, unused = 0;
  Nonce nonce{};
};
struct Challenge {
  Beginning beginning{.kind = Kind::challenge};
  Nonce nonce{};
  Digest proof{};
};
struct Proof {
  Beginning beginning{.kind = Kind::proof};
  Digest proof{};
};
/// Long enough for version 1, which reads 48 bytes before it says that the versions differ.
struct Refusal {
  Beginning beginning{.kind = Kind::refused};
  HandshakeFailure failure{};
  std::array<std::byte, 60> unused{};
};
static_assert(sizeof(Beginning) == 8 && sizeof(HelloMessage) == 56 && sizeof(Challenge) == 72);
static_assert(sizeof(Proof) == 40 && sizeof(Refusal) == 72);

template <class T>
T read_as(std::span<const std::byte> bytes) {
  T value;
  RECKON_CHECK(bytes.size() >= sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <class T>
std::vector<std::byte> bytes_of_value(const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  const std::size_t at = to.size();
  to.resize(at + bytes.size());
  std::ranges::copy(bytes, to.begin() + std::ptrdiff_t(at));
}

/// HMAC of a label, which ends in a zero so that none begins another, and the transcript.
Digest keyed(const JobSecret& secret, std::string_view label,
             std::span<const std::byte> transcript) {
  std::vector<std::byte> message;
  append(message, std::as_bytes(std::span(label)));
  message.push_back(std::byte{0});
  append(message, transcript);
  return hmac_sha256(secret.key(), message);
}
Digest proof_of_acceptor(const JobSecret& secret, std::span<const std::byte> transcript) {
  return keyed(secret, "reckon 2 acceptor's proof", transcript);
}
Digest proof_of_connector(const JobSecret& secret, std::span<const std::byte> transcript) {
  return keyed(secret, "reckon 2 connector's proof", transcript);
}
Key key_of_acceptor(const JobSecret& secret, std::span<const std::byte> transcript) {
  return keyed(secret, "reckon 2 acceptor's messages", transcript);
}
Key key_of_connector(const JobSecret& secret, std::span<const std::byte> transcript) {
  return keyed(secret, "reckon 2 connector's messages", transcript);
}

[[noreturn]] void refuse(HandshakeFailure failure, const std::string& what) {
  throw HandshakeError(failure, what, bytes_of_value(Refusal{.failure = failure}));
}
[[noreturn]] void not_ours() {
  throw HandshakeError(HandshakeFailure::other_protocol, "what arrived is no message of reckon");
}

constexpr const char* kOtherSecret =
    "it knows another secret: give all processes of a job the same --secret-file";

/// Size of the whole message, as far as its beginning tells.
std::size_t size_of(const Beginning& b) {
  if (b.magic != kProtocolMagic) not_ours();
  if (b.version != kProtocolVersion)
    refuse(HandshakeFailure::other_version,
           fmt::format("it speaks version {} of the protocol, this program {}: start all processes "
                       "of a job from the same reckon",
                       b.version, kProtocolVersion));
  switch (b.kind) {
    case Kind::hello:
      return sizeof(HelloMessage);
    case Kind::challenge:
      return sizeof(Challenge);
    case Kind::proof:
      return sizeof(Proof);
    case Kind::refused:
      return sizeof(Refusal);
  }
  not_ours();
}

/// The other side's reason, as this side says it.
[[noreturn]] void refused(HandshakeFailure failure) {
  switch (failure) {
    case HandshakeFailure::other_version:
      throw HandshakeError(failure, "it speaks another version of the protocol");
    case HandshakeFailure::other_listener:
      throw HandshakeError(failure, "it is another process of a job than the one looked for");
    case HandshakeFailure::other_secret:
      throw HandshakeError(failure, kOtherSecret);
    case HandshakeFailure::other_protocol:
      break;
  }
  not_ours();
}
}  // namespace

/// False: more of the message is to come.
bool AcceptorHandshake::complete() {
  if (received_.size() < needed_) return false;
  const auto beginning = read_as<Beginning>(received_);
  if (needed_ == sizeof(Beginning)) {
    needed_ = size_of(beginning);
    const Kind expected = transcript_.empty() ? Kind::hello : Kind::proof;
    if (beginning.kind != expected && beginning.kind != Kind::refused) not_ours();
    return false;
  }
  if (beginning.kind == Kind::refused) refused(read_as<Refusal>(received_).failure);
  if (beginning.kind != Kind::hello || needed_ > sizeof(HelloMessage)) return true;
  const std::size_t name = read_as<HelloMessage>(received_).job_length;
  if (name > kLongestJobName) not_ours();
  needed_ += name;
  return name == 0;
}

std::vector<std::byte> AcceptorHandshake::take(std::span<const std::byte> bytes) {
  RECKON_CHECK(bytes.size() <= wanted());
  append(received_, bytes);
  if (!complete()) return {};
  if (transcript_.empty()) return answer_hello();
  check_proof();
  keys_ = {.send = key_of_acceptor(secret_, transcript_),
           .receive = key_of_connector(secret_, transcript_)};
  done_ = true;
  return {};
}

std::vector<std::byte> AcceptorHandshake::answer_hello() {
  const auto hello = read_as<HelloMessage>(received_);
  if (Listening{hello.as, hello.listener_rank} != self_)
    refuse(HandshakeFailure::other_listener, "it looks for another process");
  const auto name = std::span(received_).subspan(sizeof(HelloMessage));
  peer_ = {.job = {reinterpret_cast<const char*>(name.data()), name.size()}, .rank = hello.rank};
  transcript_ = std::exchange(received_, {});
  append(transcript_, nonce_);
  needed_ = sizeof(Beginning);
  return bytes_of_value(
      Challenge{.nonce = nonce_, .proof = proof_of_acceptor(secret_, transcript_)});
}

void AcceptorHandshake::check_proof() const {
  const Digest expected = proof_of_connector(secret_, transcript_);
  if (!same_bytes(read_as<Proof>(received_).proof, expected))
    throw HandshakeError(HandshakeFailure::other_secret, kOtherSecret);
}

ConnectorHandshake::ConnectorHandshake(const JobSecret& secret, const Listening& other,
                                       const Connecting& self, const Nonce& nonce)
    : secret_(secret),
      hello_(bytes_of_value(HelloMessage{.as = other.as,
                                         .job_length = std::uint16_t(self.job.size()),
                                         .listener_rank = other.rank,
                                         .rank = self.rank,
                                         .nonce = nonce})) {
  RECKON_CHECK(self.job.size() <= kLongestJobName);
  append(hello_, std::as_bytes(std::span(self.job)));
}

std::vector<std::byte> ConnectorHandshake::take(std::span<const std::byte> bytes) {
  RECKON_CHECK(bytes.size() <= wanted());
  append(received_, bytes);
  if (received_.size() < needed_) return {};
  const auto beginning = read_as<Beginning>(received_);
  if (needed_ == sizeof(Beginning)) {
    needed_ = size_of(beginning);
    if (beginning.kind != Kind::challenge && beginning.kind != Kind::refused) not_ours();
    return {};
  }
  if (beginning.kind == Kind::refused) refused(read_as<Refusal>(received_).failure);
  const auto challenge = read_as<Challenge>(received_);
  std::vector<std::byte> transcript = hello_;
  append(transcript, challenge.nonce);
  if (!same_bytes(challenge.proof, proof_of_acceptor(secret_, transcript)))
    refuse(HandshakeFailure::other_secret, kOtherSecret);
  keys_ = {.send = key_of_connector(secret_, transcript),
           .receive = key_of_acceptor(secret_, transcript)};
  done_ = true;
  return bytes_of_value(Proof{.proof = proof_of_connector(secret_, transcript)});
}

}  // namespace reckon
