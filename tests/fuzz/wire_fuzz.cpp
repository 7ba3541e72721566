#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/parameter_server/parameter_server.h"
#include "executor/comm/parameter_server/server/protocol.h"
#include "executor/comm/rendezvous/coordinator.h"

// What arrives at the processes of a job. A stranger who does not know the secret never gets past
// the handshake; of a member's messages what is read is what was sent, or an error; a member that
// says anything, in any order, ends nothing but its job. The first byte says which of these; the
// rest is a script of what is done to a valid conversation.
namespace {

using namespace reckon;
using Bytes = std::vector<std::byte>;

void require(bool condition) {
  if (!condition) std::abort();
}

/// The fuzzer's input as a source of decisions; zeros behind its end.
class Script {
 public:
  explicit Script(std::span<const std::uint8_t> bytes) : left_(bytes) {}
  bool more() const { return !left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int k = 0; k < bytes; ++k) value = value << 8 | byte();
    return value;
  }
  Bytes bytes(std::size_t most) {
    const auto part = left_.first(std::min(most, left_.size()));
    left_ = left_.subspan(part.size());
    const auto raw = std::as_bytes(part);
    return {raw.begin(), raw.end()};
  }
  Bytes rest() { return bytes(left_.size()); }

 private:
  std::span<const std::uint8_t> left_;
};

const JobSecret& secret() {
  static const JobSecret one = JobSecret::parse(std::string(64, 'a'));
  return one;
}
Nonce nonce_of(std::uint8_t fill) {
  Nonce nonce;
  nonce.fill(std::byte{fill});
  return nonce;
}
constexpr Listening kCoordinator{Listening::As::coordinator, 0};

/// Changes, repeats or leaves out bytes of a valid text. True: it is another one now.
bool change(Bytes& text, Script& script) {
  const Bytes before = text;
  while (script.more() && !text.empty()) {
    const std::size_t at = script.number(2) % text.size();
    const auto place = text.begin() + std::ptrdiff_t(at);
    switch (script.byte() % 4) {
      case 0:
        *place ^= std::byte(script.byte());
        break;
      case 1:
        text.erase(place);
        break;
      case 2:
        text.insert(place, std::byte(script.byte()));
        break;
      default:
        text.resize(at);
    }
  }
  return text != before;
}

/// One side of a handshake, as its process sees it.
template <class Handshake>
struct Side {
  Handshake handshake;
  bool refused = false;  // and the connection closed
  bool done() const { return !refused && handshake.wanted() == 0; }
  /// Hears `said` in pieces; what it answers.
  Bytes hear(std::span<const std::byte> said, Script& script) {
    Bytes answers;
    try {
      while (!refused && !said.empty() && handshake.wanted() > 0) {
        const std::size_t most = std::min(handshake.wanted(), said.size());
        const std::size_t piece = std::clamp<std::size_t>(script.byte(), 1, most);
        const Bytes answer = handshake.take(said.first(piece));
        answers.insert(answers.end(), answer.begin(), answer.end());
        said = said.subspan(piece);
      }
    } catch (const HandshakeError& error) {
      require(*error.what() != '\0');
      refused = true;
    }
    return answers;
  }
};
Side<AcceptorHandshake> acceptor_side() { return {{secret(), kCoordinator, nonce_of(1)}}; }
Side<ConnectorHandshake> connector_side() {
  return {{secret(), kCoordinator, {"job", 1}, nonce_of(2)}};
}

// ---- strangers: any bytes

template <class Side>
void hears_a_stranger(Side side, Script& script) {
  const std::uint8_t piece = script.byte();
  const Bytes said = script.rest();
  const std::vector<std::uint8_t> pieces(said.size(), piece);
  Script in_pieces(pieces);
  side.hear(said, in_pieces);
  require(!side.done());
}

// ---- somebody between two members

bool begins_with(const Bytes& text, const Bytes& part) {
  return text.size() >= part.size() && std::equal(part.begin(), part.end(), text.begin());
}

/// The acceptor is done, and both agree, where every byte arrived as the connector sent it, and
/// nowhere else.
void handshake_is_changed(Script& script) {
  auto acceptor = acceptor_side();
  auto connector = connector_side();
  const bool second = script.byte() % 2 == 1;
  const Bytes said = connector.handshake.hello();
  Bytes hello = said;
  bool changed = !second && change(hello, script);
  const Bytes challenge = acceptor.hear(hello, script);
  const Bytes proof = connector.hear(challenge, script);
  Bytes heard = proof;
  changed = (second && change(heard, script)) || changed;
  acceptor.hear(heard, script);
  require(changed || acceptor.done());
  if (!acceptor.done()) return;
  require(begins_with(hello, said) && begins_with(heard, proof) && connector.done());
  const AcceptorHandshake& a = acceptor.handshake;
  const ConnectorHandshake& c = connector.handshake;
  require(a.keys().send == c.keys().receive && a.keys().receive == c.keys().send);
  require(a.peer().job == "job" && a.peer().rank == 1);
}

/// What is read is what was sent, up to where it was changed.
void messages_are_changed(Script& script) {
  const Key key = hmac_sha256(secret().key(), {});
  Gmac send(key), receive(key);
  std::vector<Bytes> sent;
  Bytes stream;
  for (std::uint64_t number = 0; number < 3; ++number) {
    sent.push_back(script.bytes(script.byte() % 64));
    const auto head = encode_head(send, number, 7, 1, number, sent.back());
    stream.insert(stream.end(), head.begin(), head.end());
    stream.insert(stream.end(), sent.back().begin(), sent.back().end());
  }
  change(stream, script);
  constexpr std::uint64_t kLimit = 1 << 10;
  MessageReader reader(kLimit);
  std::size_t read = 0;
  try {
    for (std::span<const std::byte> left = stream; !left.empty();) {
      const std::size_t piece = std::min<std::size_t>(left.size(), 100);
      for (const Message& message : reader.take(receive, left.first(piece))) {
        require(read < sent.size() && message.payload == sent[read]);
        require(message.head.tag == read && message.head.kind == 7);
        ++read;
      }
      left = left.subspan(piece);
    }
  } catch (const WireError&) {
  }
}

// ---- payloads, any bytes

template <class Decode>
void decodes(std::span<const std::byte> bytes, const Decode& decode) {
  try {
    const auto value = decode(bytes);
    require(encode(decode(encode(value))) == encode(value));
  } catch (const WireError&) {
  }
}

void payload(Script& script) {
  const std::uint8_t which = script.byte() % 9;
  const Bytes bytes = script.rest();
  switch (which) {
    case 0:
      return decodes(bytes, decode_hello);
    case 1:
      return decodes(bytes, decode_members);
    case 2:
      return decodes(bytes, decode_ranks);
    case 3:
      return decodes(bytes, decode_greeting);
    case 4:
      return decodes(bytes, decode_pull_report);
    case 5:
      return decodes(bytes, decode_failure);
    case 6:
      return decodes(bytes, decode_progress);
    case 7:
      return decodes(bytes, decode_step_end);
    default:
      return decodes(bytes, decode_return);
  }
}

// ---- a member that says anything, to a real coordinator and a real parameter server

/// A listener without a network, and a way to it.
class Door {
 public:
  Door() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un any{.sun_family = AF_UNIX, .sun_path = {}};
    require(::bind(listener_.fd(), reinterpret_cast<sockaddr*>(&any), sizeof any.sun_family) == 0);
    require(::listen(listener_.fd(), 8) == 0);
    size_ = sizeof address_;
    require(::getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&address_), &size_) == 0);
  }
  Socket take_listener() { return std::move(listener_); }
  Socket enter() const {
    Socket socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address_), size_) != 0) return {};
    const int flags = ::fcntl(socket.fd(), F_GETFL);
    ::fcntl(socket.fd(), F_SETFL, flags | O_NONBLOCK);
    return socket;
  }

 private:
  Socket listener_;
  sockaddr_un address_{};
  socklen_t size_ = 0;
};

/// A connection that has proved itself.
Channel enter(const Door& door, const Listening& other, std::uint32_t rank) {
  const Deadline deadline = Deadline::after(Seconds{5});
  Socket socket = door.enter();
  ConnectorHandshake handshake(secret(), other, {"reckon", rank}, nonce_of(3));
  send_all(socket, handshake.hello(), deadline);
  while (handshake.wanted() > 0) {
    Bytes piece(handshake.wanted());
    receive_all(socket, piece, deadline);
    const Bytes answer = handshake.take(piece);
    if (!answer.empty()) send_all(socket, answer, deadline);
  }
  return Channel(std::move(socket), handshake.keys());
}

/// Messages of the script: kind, tag, payload. `first`: of the kinds of this protocol.
void say_anything(Channel& channel, Script& script, std::uint16_t first) {
  constexpr int kKinds = 24, kMostMessages = 32;
  for (int k = 0; k < kMostMessages && script.more(); ++k) {
    const auto kind = std::uint16_t(first + script.byte() % kKinds);
    const std::uint64_t tag = script.byte() % 2 == 0 ? script.byte() : script.number(8);
    const Bytes payload = script.bytes(script.byte());
    send_message(channel, kind, 1, tag, payload, Deadline::after(Seconds{1}));
  }
}

void member_of_rendezvous(Script& script) {
  Door door;
  const RendezvousOptions options{.secret = secret(),
                                  .size = 1 + script.byte() % 2,
                                  .deadline = Seconds{0.05},
                                  .grace = Seconds{0}};
  Coordinator coordinator(door.take_listener(), options);
  try {
    Channel channel = enter(door, kCoordinator, 0);
    if (script.byte() % 4 != 0) {
      Hello hello{.attempt = 0, .size = options.size};
      hello.member.host = "here";
      send_message(channel, std::uint16_t(RendezvousMessage::hello), 0, 0, encode(hello),
                   Deadline::after(Seconds{1}));
    }
    say_anything(channel, script, std::uint16_t(RendezvousMessage::hello));
  } catch (const SocketError&) {
    // It was shown out.
  }
}

ServerJob server_job() {
  static const std::vector<ParameterRange> layers{{0, 8}, {8, 5}};
  ServerJob job;
  job.keys = server_keys(layers, {1});
  return job;
}

void worker_of_server(Script& script) {
  static const std::unique_ptr<Membership> membership = [] {
    RendezvousOptions options{.secret = secret()};
    options.master = {"127.0.0.1", 0};
    return Membership::join(options, listen_on(options.master));
  }();
  Door door;
  ServerJob job = server_job();
  job.synchronous = script.byte() % 2 == 0;
  constexpr Seconds kTimeout{0.02};
  std::thread server([&] {
    try {
      run_parameter_server(*membership, "reckon", 0, job, door.take_listener(), kTimeout);
    } catch (const CommError&) {
      // Its worker is lost or breaks the protocol: the job ends.
    }
  });
  try {
    Channel channel = enter(door, {Listening::As::parameter_server, 0}, 0);
    if (script.byte() % 4 != 0) {
      const Greeting greeting{.attempt = 0, .worker = 0, .digest = job.digest()};
      send_message(channel, std::uint16_t(ServerMessage::hello), 0, 0, encode(greeting),
                   Deadline::after(Seconds{1}));
    }
    say_anything(channel, script, std::uint16_t(ServerMessage::hello));
  } catch (const SocketError&) {
    // It was shown out.
  }
  server.join();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Script script({data + 1, size - 1});
  switch (data[0]) {
    case 's':
      hears_a_stranger(acceptor_side(), script);
      break;
    case 'S':
      hears_a_stranger(connector_side(), script);
      break;
    case 'h':
      handshake_is_changed(script);
      break;
    case 'm':
      messages_are_changed(script);
      break;
    case 'p':
      payload(script);
      break;
    case 'r':
      member_of_rendezvous(script);
      break;
    case 'w':
      worker_of_server(script);
      break;
    default:
      break;
  }
  return 0;
}
