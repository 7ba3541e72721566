#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "executor/comm/rendezvous/handshake.h"

// How two processes prove that they know a job's secret: on bytes alone.
namespace {
using namespace reckon;
using ByteList = std::vector<std::byte>;

constexpr Listening kCoordinator{Listening::As::coordinator, 0};
constexpr Listening kServer{Listening::As::parameter_server, 5};

Nonce nonce_of(int number) {
  Nonce nonce{};
  nonce.fill(std::byte(number));
  return nonce;
}

/// Everything that one side says, to the other; returns the other's answers.
template <class Side>
ByteList tell(Side& side, std::span<const std::byte> bytes) {
  ByteList answers;
  while (!bytes.empty() && side.wanted() > 0) {
    const auto piece = bytes.first(std::min(bytes.size(), side.wanted()));
    const ByteList answer = side.take(piece);
    answers.insert(answers.end(), answer.begin(), answer.end());
    bytes = bytes.subspan(piece.size());
  }
  CHECK(bytes.empty());  // nothing is left over
  return answers;
}

struct Talk {
  explicit Talk(const JobSecret& of_connector, const JobSecret& of_acceptor,
                const Listening& sought = kCoordinator, const Listening& found = kCoordinator)
      : connector(of_connector, sought, {"job", 3}, nonce_of(1)),
        acceptor(of_acceptor, found, nonce_of(2)) {}
  ConnectorHandshake connector;
  AcceptorHandshake acceptor;
  ByteList hello, challenge, proof;
  void run() {
    hello = connector.hello();
    challenge = tell(acceptor, hello);
    proof = tell(connector, challenge);
    CHECK(tell(acceptor, proof).empty());
  }
};

HandshakeFailure failure_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const HandshakeError& error) {
    return error.failure;
  }
  return HandshakeFailure{};  // none
}
}  // namespace

TEST_CASE("two sides that know the secret end with each other's keys, one for each direction") {
  const JobSecret secret = JobSecret::random();
  Talk talk(secret, secret);
  talk.run();
  CHECK(talk.connector.wanted() == 0);
  CHECK(talk.acceptor.wanted() == 0);
  CHECK(talk.acceptor.peer().job == "job");
  CHECK(talk.acceptor.peer().rank == 3);
  CHECK(talk.connector.keys().send == talk.acceptor.keys().receive);
  CHECK(talk.connector.keys().receive == talk.acceptor.keys().send);
  CHECK(talk.connector.keys().send != talk.connector.keys().receive);
  CHECK(talk.connector.keys().send != secret.key());
}

TEST_CASE("another secret is found by whoever connects, and both sides say so") {
  Talk talk(JobSecret::random(), JobSecret::random());
  const ByteList challenge = tell(talk.acceptor, talk.connector.hello());
  ByteList reply;
  try {
    tell(talk.connector, challenge);
    FAIL("no error");
  } catch (const HandshakeError& error) {
    CHECK(error.failure == HandshakeFailure::other_secret);
    CHECK_THAT(error.what(),
               Catch::Contains("knows another secret") && Catch::Contains("--secret-file"));
    reply = error.reply;
  }
  REQUIRE_FALSE(reply.empty());
  CHECK(failure_of([&] { tell(talk.acceptor, reply); }) == HandshakeFailure::other_secret);
}

TEST_CASE("a stranger that skips the check proves nothing by guesses or by what it was told") {
  const JobSecret secret = JobSecret::random();
  Talk good(secret, secret);
  good.run();
  const auto answered_with = [&](ByteList proof) {
    AcceptorHandshake acceptor(secret, kCoordinator, nonce_of(2));
    tell(acceptor, good.hello);
    const auto failure = failure_of([&] { tell(acceptor, proof); });
    return failure == HandshakeFailure{} && acceptor.wanted() == 0;
  };
  CHECK(answered_with(good.proof));
  for (std::size_t bit = 0; bit < 8 * good.proof.size(); ++bit) {
    ByteList bad = good.proof;
    bad[bit / 8] ^= std::byte(1 << (bit % 8));
    INFO("bit " << bit);
    CHECK_FALSE(answered_with(bad));
  }
  // The acceptor's own proof, sent back.
  ByteList reflected = good.proof;
  std::copy(good.challenge.end() - 32, good.challenge.end(), reflected.end() - 32);
  CHECK_FALSE(answered_with(reflected));
}

TEST_CASE("what was recorded of a connector proves nothing the next time") {
  const JobSecret secret = JobSecret::random();
  Talk good(secret, secret);
  good.run();
  AcceptorHandshake again(secret, kCoordinator, nonce_of(77));
  tell(again, good.hello);
  CHECK(failure_of([&] { tell(again, good.proof); }) == HandshakeFailure::other_secret);
  // Nor what was recorded of an acceptor.
  ConnectorHandshake connector(secret, kCoordinator, {"job", 3}, nonce_of(78));
  CHECK(failure_of([&] { tell(connector, good.challenge); }) == HandshakeFailure::other_secret);
}

TEST_CASE("a hello that is changed on its way, in its rank, job or nonce, is no proof") {
  const JobSecret secret = JobSecret::random();
  const ByteList hello = Talk(secret, secret).connector.hello();
  for (std::size_t at = 8; at < hello.size(); ++at) {
    ByteList bad = hello;
    bad[at] ^= std::byte{1};
    Talk talk(secret, secret);
    bool refused = false;
    try {
      ByteList answer;
      std::span<const std::byte> left = bad;
      while (!left.empty() && answer.empty()) {
        const auto piece = left.first(std::min(left.size(), talk.acceptor.wanted()));
        answer = talk.acceptor.take(piece);
        left = left.subspan(piece.size());
      }
      refused = answer.empty();  // it waits for a longer name
      if (!refused) tell(talk.connector, answer);
    } catch (const HandshakeError&) {
      refused = true;
    }
    INFO("byte " << at);
    CHECK(refused);
  }
}

TEST_CASE("a proof for one listener is none for another") {
  const JobSecret secret = JobSecret::random();
  for (const Listening& found :
       {kServer, Listening{Listening::As::coordinator, 1}, Listening{kServer.as, 0}}) {
    Talk talk(secret, secret, kCoordinator, found);
    ByteList reply;
    try {
      tell(talk.acceptor, talk.connector.hello());
      FAIL("no error");
    } catch (const HandshakeError& error) {
      CHECK(error.failure == HandshakeFailure::other_listener);
      reply = error.reply;
    }
    CHECK(failure_of([&] { tell(talk.connector, reply); }) == HandshakeFailure::other_listener);
  }
}

TEST_CASE("another version is told which one speaks here, in words that version 1 understands") {
  const JobSecret secret = JobSecret::random();
  AcceptorHandshake acceptor(secret, kCoordinator, nonce_of(2));
  // The beginning of a message of version 1: magic, version, kind.
  const std::array<std::uint16_t, 4> old{0x4352, 0x4e4b, 1, 1};
  ByteList reply;
  try {
    acceptor.take(std::as_bytes(std::span(old)));
    FAIL("no error");
  } catch (const HandshakeError& error) {
    CHECK(error.failure == HandshakeFailure::other_version);
    CHECK_THAT(error.what(),
               Catch::Contains(fmt::format("speaks version 1 of the protocol, this program {}",
                                           kProtocolVersion)));
    reply = error.reply;
  }
  // Version 1 reads 48 bytes, finds its magic and then "message of protocol version N".
  REQUIRE(reply.size() >= 48);
  CHECK(std::equal(reply.begin(), reply.begin() + 4, std::as_bytes(std::span(old)).begin()));
  CHECK(reply[4] == std::byte(kProtocolVersion));
  ConnectorHandshake connector(secret, kCoordinator, {"job", 3}, nonce_of(1));
  CHECK(failure_of([&] { tell(connector, reply); }) == HandshakeFailure::other_version);
}

TEST_CASE("what is no message of reckon, or not its turn, ends the handshake without an answer") {
  const JobSecret secret = JobSecret::random();
  Talk good(secret, secret);
  good.run();
  const std::string http = "GET / HTTP/1.1\r\n";
  const auto first_words = [&](std::span<const std::byte> bytes) {
    AcceptorHandshake acceptor(secret, kCoordinator, nonce_of(2));
    try {
      acceptor.take(bytes.first(acceptor.wanted()));
    } catch (const HandshakeError& error) {
      CHECK(error.reply.empty());
      return error.failure;
    }
    return HandshakeFailure{};
  };
  CHECK(first_words(std::as_bytes(std::span(http))) == HandshakeFailure::other_protocol);
  CHECK(first_words(good.challenge) == HandshakeFailure::other_protocol);
  CHECK(first_words(good.proof) == HandshakeFailure::other_protocol);
  CHECK(first_words(ByteList(8)) == HandshakeFailure::other_protocol);
  ConnectorHandshake connector(secret, kCoordinator, {"job", 3}, nonce_of(1));
  CHECK(failure_of([&] { tell(connector, good.hello); }) == HandshakeFailure::other_protocol);
}

TEST_CASE("a hello names a job of at most 255 bytes, and of none") {
  const JobSecret secret = JobSecret::random();
  for (const std::size_t length : {0u, 1u, 255u}) {
    ConnectorHandshake connector(secret, kServer, {std::string(length, 'x'), 1}, nonce_of(1));
    AcceptorHandshake acceptor(secret, kServer, nonce_of(2));
    tell(acceptor, tell(connector, tell(acceptor, connector.hello())));
    CHECK(acceptor.wanted() == 0);
    CHECK(acceptor.peer().job.size() == length);
  }
  ConnectorHandshake connector(secret, kServer, {"x", 1}, nonce_of(1));
  ByteList longer = connector.hello();
  longer[11] = std::byte{1};  // 256 and more
  AcceptorHandshake acceptor(secret, kServer, nonce_of(2));
  CHECK(failure_of([&] { tell(acceptor, std::span(longer).first(56)); }) ==
        HandshakeFailure::other_protocol);
}

TEST_CASE("HMAC-SHA256 and GMAC give the values of their standards") {
  const auto bytes = [](const std::string& hex) {
    ByteList out;
    for (std::size_t k = 0; k + 1 < hex.size(); k += 2)
      out.push_back(std::byte(std::stoi(hex.substr(k, 2), nullptr, 16)));
    return out;
  };
  // RFC 4231, test case 1: its key of 20 bytes, which HMAC pads with zeros.
  Key key{};
  std::fill_n(key.begin(), 20, std::byte{0x0b});
  const std::string hi = "Hi There";
  const Digest digest = hmac_sha256(key, std::as_bytes(std::span(hi)));
  CHECK(ByteList(digest.begin(), digest.end()) ==
        bytes("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"));
  // The GCM specification [McGrew, Viega 2005], test case 13: no text, key and nonce of zeros.
  const Tag tag = Gmac(Key{}).tag(0, 0, {});
  CHECK(ByteList(tag.begin(), tag.end()) == bytes("530f8afbc74536b9a963b4f1c4cb738b"));
  // Every message of a key has a tag of its own.
  Gmac mac(key);
  const auto text = std::as_bytes(std::span(hi));
  CHECK(mac.tag(1, 0, text) == Gmac(key).tag(1, 0, text));
  CHECK(mac.tag(1, 0, text) != mac.tag(2, 0, text));
  CHECK(mac.tag(1, 0, text) != mac.tag(1, 1, text));
  CHECK(mac.tag(1, 0, text) != mac.tag(1, 0, text.first(7)));
}
