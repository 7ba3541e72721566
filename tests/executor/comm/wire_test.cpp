#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "executor/comm/wire.h"

namespace {
using namespace reckon;

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    a = Socket{ends[0]};
    b = Socket{ends[1]};
  }
  Socket a, b;
};
Deadline soon() { return Deadline::after(Seconds{2}); }

std::vector<std::byte> bytes_of_a_message(std::string_view payload) {
  Pair pair;
  send_message(pair.a, 3, 7, 11, std::as_bytes(std::span(payload)), soon());
  std::vector<std::byte> raw(kMessageHeadSize + payload.size());
  receive_all(pair.b, raw, soon());
  return raw;
}
}  // namespace

TEST_CASE("a message arrives as it was sent") {
  Pair pair;
  const std::string payload = "gradients";
  send_message(pair.a, 3, 7, 11, std::as_bytes(std::span(payload)), soon());
  const Message message = receive_message(pair.b, 100, soon());
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
    send_all(pair.a, bad, soon());
    INFO("bit " << bit);
    CHECK_THROWS_AS(receive_message(pair.b, 100, soon()), WireError);
  }
}

TEST_CASE("a length over the limit is refused before anything is allocated or read") {
  Pair pair;
  const std::string payload(101, 'x');
  send_message(pair.a, 3, 7, 11, std::as_bytes(std::span(payload)), soon());
  CHECK_THROWS_WITH(receive_message(pair.b, 100, soon()),
                    Catch::Contains("message of 101 bytes; at most 100 are expected"));
}

TEST_CASE("an end inside a message is a closed connection, silence a timeout") {
  const std::vector<std::byte> good = bytes_of_a_message("gradients");
  Pair pair;
  send_all(pair.a, std::span(good).first(50), soon());
  try {
    receive_message(pair.b, 100, Deadline::after(Seconds{0.05}));
    FAIL("no error");
  } catch (const SocketError& error) {
    CHECK(error.kind == SocketError::Kind::timeout);
  }
  Pair other;
  send_all(other.a, std::span(good).first(50), soon());
  other.a.close();
  try {
    receive_message(other.b, 100, soon());
    FAIL("no error");
  } catch (const SocketError& error) {
    CHECK(error.kind == SocketError::Kind::closed);
  }
}

TEST_CASE("messages that arrive in pieces are put together") {
  const std::vector<std::byte> one = bytes_of_a_message("gradients"),
                               two = bytes_of_a_message("of two messages");
  std::vector<std::byte> both = one;
  both.insert(both.end(), two.begin(), two.end());
  for (std::size_t cut = 1; cut < both.size(); ++cut) {
    Pair pair;
    MessageReader reader(100);
    std::vector<Message> got;
    for (const auto piece : {std::span(both).first(cut), std::span(both).subspan(cut)}) {
      send_all(pair.a, piece, soon());
      for (Message& m : reader.read(pair.b)) got.push_back(std::move(m));
    }
    REQUIRE(got.size() == 2);
    CHECK(got[1].payload.size() == 15);
    pair.a.close();
    CHECK_THROWS_AS(reader.read(pair.b), SocketError);
  }
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

TEST_CASE("addresses are read as people write them") {
  CHECK(parse_host_port("node:80") == HostPort{"node", 80});
  CHECK(parse_host_port("10.0.0.1:65535") == HostPort{"10.0.0.1", 65535});
  CHECK(parse_host_port("[fe80::1]:5") == HostPort{"fe80::1", 5});
  CHECK(text(HostPort{"fe80::1", 5}) == "[fe80::1]:5");
  for (const char* bad :
       {"node", "node:", ":80", "node:65536", "node:-1", "node:8o", "fe80::1:5", "[fe80::1:5", ""})
    CHECK(parse_host_port(bad) == std::nullopt);
}
