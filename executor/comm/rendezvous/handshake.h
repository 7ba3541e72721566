#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/comm/crypto.h"
#include "executor/comm/rendezvous/job_secret.h"

// How two processes of a job prove to each other that they know its secret, before anything else
// is said. Bytes in, bytes out: no sockets here.
//
//   connector -> acceptor  hello      version, job, own rank, whom it looks for, nonce
//   acceptor  -> connector challenge  nonce, proof
//   connector -> acceptor  proof
//
// A proof is HMAC-SHA256 under the secret of a label and the transcript: the hello's bytes and the
// acceptor's nonce. The label differs by side, so that no proof serves as the other; both nonces
// are new, so that none serves again. The keys of the messages that follow are made in the same
// way, one for each direction. Either side may say `refused` with a reason in place of its next
// message.
namespace reckon {

/// Of all that processes of a job say to each other. 1: reckon without a secret; 2: without a proof
/// on Gloo's connections; 3: without a way back for a rank whose connection was cut; 4: without the
/// settings of a rank's start.
inline constexpr std::uint16_t kProtocolVersion = 6;
inline constexpr std::uint32_t kProtocolMagic = 0x4e4b4352;  // "RCKN", as all messages begin

/// Who listens.
struct Listening {
  enum class As : std::uint16_t { coordinator = 1, parameter_server = 2 };
  As as = As::coordinator;
  std::uint32_t rank = 0;
  friend bool operator==(const Listening&, const Listening&) = default;
};

/// Who connects, as it says itself; it is true where the handshake is done.
struct Connecting {
  std::string job;  // at most kLongestJobName bytes
  std::uint32_t rank = 0;
};
inline constexpr std::size_t kLongestJobName = 255;

enum class HandshakeFailure : std::uint32_t {
  other_protocol = 1,  // what arrived is no message of reckon, or not one of this state
  other_version,
  other_listener,  // it looks for another process
  other_secret,
};

class HandshakeError : public std::runtime_error {
 public:
  HandshakeError(HandshakeFailure failure, const std::string& what,
                 std::vector<std::byte> reply = {})
      : std::runtime_error(what), failure(failure), reply(std::move(reply)) {}
  HandshakeFailure failure;
  std::vector<std::byte> reply;  // to be sent before the connection is closed; may be empty
};

/// Of one side.
struct ChannelKeys {
  Key send{}, receive{};
};

/// The side that accepted the connection. At first it waits.
class AcceptorHandshake {
 public:
  AcceptorHandshake(const JobSecret& secret, const Listening& self, const Nonce& nonce)
      : secret_(secret), self_(self), nonce_(nonce) {}
  /// So many bytes of what the other side sends belong to the handshake, as far as is known; 0:
  /// it is done.
  std::size_t wanted() const { return done_ ? 0 : needed_ - received_.size(); }
  /// `bytes`: at most wanted(). Returns what is to be sent, if anything. Throws HandshakeError.
  std::vector<std::byte> take(std::span<const std::byte> bytes);
  /// Once it is done.
  const Connecting& peer() const { return peer_; }
  const ChannelKeys& keys() const { return keys_; }

 private:
  bool complete();
  std::vector<std::byte> answer_hello();
  void check_proof() const;

  const JobSecret secret_;
  const Listening self_;
  const Nonce nonce_;
  std::vector<std::byte> received_;  // of the message that arrives
  std::size_t needed_ = 8;           // first a message's beginning
  std::vector<std::byte> transcript_;
  bool done_ = false;
  Connecting peer_;
  ChannelKeys keys_;
};

/// The side that connected: it sends hello() first.
class ConnectorHandshake {
 public:
  /// The job's name must not be longer than kLongestJobName.
  ConnectorHandshake(const JobSecret& secret, const Listening& other, const Connecting& self,
                     const Nonce& nonce);
  const std::vector<std::byte>& hello() const { return hello_; }
  std::size_t wanted() const { return done_ ? 0 : needed_ - received_.size(); }
  std::vector<std::byte> take(std::span<const std::byte> bytes);
  const ChannelKeys& keys() const { return keys_; }

 private:
  const JobSecret secret_;
  std::vector<std::byte> hello_, received_;
  std::size_t needed_ = 8;
  bool done_ = false;
  ChannelKeys keys_;
};

}  // namespace reckon
