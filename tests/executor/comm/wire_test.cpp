#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "executor/comm/wire.h"

namespace {
using namespace reckon;

Key key_of(int number) {
  Key key{};
  key.fill(std::byte(number));
  return key;
}

/// What `a` sends `b` checks with the same key; what comes back has another.
struct Pair {
  Pair() : Pair(descriptors()) {}
  Channel a, b;

 private:
  explicit Pair(std::array<int, 2> ends)
      : a(Socket{ends[0]}, {.send = key_of(1), .receive = key_of(2)}),
        b(Socket{ends[1]}, {.send = key_of(2), .receive = key_of(1)}) {}
  static std::array<int, 2> descriptors() {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    return ends;
  }
};
Deadline wire_soon() { return Deadline::after(Seconds{2}); }

std::vector<std::byte> bytes_of_a_message(std::string_view payload) {
  Pair pair;
  send_message(pair.a, 3, 7, 11, std::as_bytes(std::span(payload)), wire_soon());
  std::vector<std::byte> raw(kMessageHeadSize + payload.size());
  receive_all(pair.b.socket(), raw, wire_soon());
  return raw;
}
}  // namespace

TEST_CASE("a message arrives as it was sent") {
  Pair pair;
  const std::string payload = "gradients";
  send_message(pair.a, 3, 7, 11, std::as_bytes(std::span(payload)), wire_soon());
  const Message message = receive_message(pair.b, 100, wire_soon());
  CHECK(message.head.kind == 3);
  CHECK(message.head.sender == 7);
  CHECK(message.head.tag == 11);
  CHECK(std::string(reinterpret_cast<const char*>(message.payload.data()),
                    message.payload.size()) == payload);
}

TEST_CASE("any flipped bit of a message is an error, never another message") {
  const std::vector<std::byte> good = bytes_of_a_message("gradients");
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= std::byte(1 << (bit % 8));
    Pair pair;
    send_all(pair.a.socket(), bad, wire_soon());
    INFO("bit " << bit);
    CHECK_THROWS_AS(receive_message(pair.b, 100, wire_soon()), WireError);
  }
}

TEST_CASE("a length over the limit is refused before anything is allocated or read") {
  Pair pair;
  const std::string payload(101, 'x');
  send_message(pair.a, 3, 7, 11, std::as_bytes(std::span(payload)), wire_soon());
  CHECK_THROWS_WITH(receive_message(pair.b, 100, wire_soon()),
                    Catch::Contains("message of 101 bytes; at most 100 are expected"));
}

TEST_CASE("an end inside a message is a closed connection, silence a timeout") {
  const std::vector<std::byte> good = bytes_of_a_message("gradients");
  Pair pair;
  send_all(pair.a.socket(), std::span(good).first(50), wire_soon());
  try {
    receive_message(pair.b, 100, Deadline::after(Seconds{0.05}));
    FAIL("no error");
  } catch (const SocketError& error) {
    CHECK(error.kind == SocketError::Kind::timeout);
  }
  Pair other;
  send_all(other.a.socket(), std::span(good).first(50), wire_soon());
  other.a.socket().close();
  try {
    receive_message(other.b, 100, wire_soon());
    FAIL("no error");
  } catch (const SocketError& error) {
    CHECK(error.kind == SocketError::Kind::closed);
  }
}

TEST_CASE("messages that arrive in pieces are put together") {
  std::vector<std::byte> both(2 * kMessageHeadSize + 9 + 15);
  {
    Pair pair;
    for (const std::string text : {"gradients", "of two messages"})
      send_message(pair.a, 3, 7, 11, std::as_bytes(std::span(text)), wire_soon());
    receive_all(pair.b.socket(), both, wire_soon());
  }
  for (std::size_t cut = 1; cut < both.size(); ++cut) {
    Pair pair;
    MessageReader reader(100);
    std::vector<Message> got;
    for (const auto piece : {std::span(both).first(cut), std::span(both).subspan(cut)}) {
      send_all(pair.a.socket(), piece, wire_soon());
      for (Message& m : reader.read(pair.b)) got.push_back(std::move(m));
    }
    REQUIRE(got.size() == 2);
    CHECK(got[1].payload.size() == 15);
    pair.a.socket().close();
    CHECK_THROWS_AS(reader.read(pair.b), SocketError);
  }
}

TEST_CASE("a message that is repeated, left out, changed in order or sent back is an error") {
  const auto raw_messages = [](Pair& pair) {
    std::vector<std::vector<std::byte>> raw;
    for (const std::string text : {"first", "other"}) {
      send_message(pair.a, 3, 7, 11, std::as_bytes(std::span(text)), wire_soon());
      raw.emplace_back(kMessageHeadSize + text.size());
      receive_all(pair.b.socket(), raw.back(), wire_soon());
    }
    return raw;
  };
  const auto deliver = [&](const std::vector<int>& order) {
    Pair pair;
    const auto raw = raw_messages(pair);
    for (const int k : order) send_all(pair.a.socket(), raw[std::size_t(k)], wire_soon());
    for (std::size_t k = 0; k < order.size(); ++k) receive_message(pair.b, 100, wire_soon());
  };
  CHECK_NOTHROW(deliver({0, 1}));
  CHECK_THROWS_WITH(deliver({0, 0}), Catch::Contains("damaged or forged"));
  CHECK_THROWS_WITH(deliver({1}), Catch::Contains("damaged or forged"));
  CHECK_THROWS_WITH(deliver({1, 0}), Catch::Contains("damaged or forged"));
  Pair pair;
  const auto raw = raw_messages(pair);
  send_all(pair.b.socket(), raw[0], wire_soon());
  CHECK_THROWS_WITH(receive_message(pair.a, 100, wire_soon()),
                    Catch::Contains("damaged or forged"));
}

TEST_CASE("fields are read back, and a payload that ends inside one is refused") {
  FieldWriter fields;
  fields.number(-5).text("rank").number(1);
  FieldReader good{fields.bytes()};
  CHECK(good.number() == -5);
  CHECK(good.text() == "rank");
  CHECK(good.number() == 1);
  for (std::size_t size = 0; size < fields.bytes().size(); ++size) {
    FieldReader cut{fields.bytes().first(size)};
    const auto all = [&] { cut.number(), cut.text(), cut.number(); };
    CHECK_THROWS_AS(all(), WireError);
  }
  FieldWriter huge;
  huge.number(std::int64_t{1} << 60);
  FieldReader lies{huge.bytes()};
  CHECK_THROWS_AS(lies.text(), WireError);
}

TEST_CASE("a loopback is told from other addresses, and by which address a peer is reached") {
  for (const char* here : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) CHECK(is_loopback(here));
  for (const char* there : {"", "10.0.0.1", "0.0.0.0", "::", "node", "localhost.example"})
    CHECK_FALSE(is_loopback(there));
  CHECK(local_address_towards({"127.0.0.1", 80}) == "127.0.0.1");
  CHECK(local_address_towards({"no-such-host.invalid", 80}).empty());
}

TEST_CASE("addresses are read as people write them") {
  CHECK(parse_host_port("node:80") == HostPort{"node", 80});
  CHECK(parse_host_port("10.0.0.1:65535") == HostPort{"10.0.0.1", 65535});
  CHECK(parse_host_port("[fe80::1]:5") == HostPort{"fe80::1", 5});
  CHECK(text(HostPort{"fe80::1", 5}) == "[fe80::1]:5");
  for (const char* bad :
       {"node", "node:", ":80", "node:65536", "node:-1", "node:8o", "fe80::1:5", "[fe80::1:5", ""})
    CHECK(parse_host_port(bad) == std::nullopt);
}
