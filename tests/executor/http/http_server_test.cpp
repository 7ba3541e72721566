#include "executor/http/http_server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "executor/http/bearer_token.h"
#include "executor/serve/http_client.h"
#include "support/listening.h"
#include "support/skip.h"

using namespace reckon;
using namespace std::chrono_literals;
using test::HttpClient;

namespace {

/// Answers every request with its method, path and body.
std::optional<HttpReply> echo(const HttpRequest& request, const HttpAnswerLater&) {
  return HttpReply{.body = request.method + ' ' + request.path + ' ' + request.body};
}

HttpOptions options(std::size_t connections = 1024) {
  return {.connections = connections, .largest_body = [] { return std::uint64_t{1024}; }};
}

using Clients = std::vector<std::unique_ptr<HttpClient>>;

/// `count` connections, each of which has said `text` and nothing more.
Clients silent_clients(const HttpServer& server, int count, const std::string& text) {
  Clients clients;
  for (int k = 0; k < count; ++k) {
    clients.push_back(std::make_unique<HttpClient>(server.address().port));
    if (!text.empty()) clients.back()->send(text);
  }
  return clients;
}

bool answers(const HttpServer& server) {
  return HttpClient(server.address().port).get("/x").status == 200;
}

}  // namespace

TEST_CASE("a server listens on loopback unless it is told another address") {
  const HttpServer here(options(), echo);
  CHECK(here.address().host == "127.0.0.1");
  CHECK(test::listening_addresses(here.address().port) == std::vector<std::string>{"0100007F"});
  HttpOptions all = options();
  all.listen = {"0.0.0.0", 0};
  const HttpServer everywhere(all, echo);
  CHECK(test::listening_addresses(everywhere.address().port) ==
        std::vector<std::string>{"00000000"});
  HttpOptions taken = options();
  taken.listen = here.address();
  CHECK_THROWS_WITH(HttpServer(taken, echo),
                    Catch::Contains("127.0.0.1:" + std::to_string(here.address().port) +
                                    ": Address already in use"));
}

TEST_CASE("addresses are a port, or an IP address and a port") {
  CHECK(parse_listen_address("9090") == ListenAddress{"127.0.0.1", 9090});
  CHECK(parse_listen_address("0.0.0.0:0") == ListenAddress{"0.0.0.0", 0});
  CHECK(parse_listen_address("localhost:1") == ListenAddress{"127.0.0.1", 1});
  CHECK(parse_listen_address("[::1]:9090") == ListenAddress{"::1", 9090});
  CHECK(text(ListenAddress{"::1", 90}) == "[::1]:90");
  CHECK(text(reachable_here({"0.0.0.0", 90})) == "127.0.0.1:90");
  CHECK(text(reachable_here({"::", 90})) == "[::1]:90");
  for (const char* wrong : {"", ":90", "a.example:90", "::1:90", "[1.2.3.4]:90", "1.2.3.4:70000",
                            "1.2.3.4:-1", "1.2.3.4", "[::1]", "90 "}) {
    INFO(wrong);
    CHECK_FALSE(parse_listen_address(wrong));
  }
}

TEST_CASE("requests that come at once are answered in their order") {
  const HttpServer server(options(), echo);
  HttpClient client(server.address().port);
  client.send(HttpClient::request("POST", "/a", "1") + HttpClient::request("GET", "/b?c") +
              HttpClient::request("PUT", "/d", "22"));
  CHECK(client.answer().body == "POST /a 1");
  CHECK(client.answer().body == "GET /b ");
  CHECK(client.answer().body == "PUT /d 22");
}

TEST_CASE("where all connections are taken the one that was silent longest gives way") {
  const char* said = GENERATE("", "G", "GET / HTTP/1.1\r\nHost: x\r\nX-Long: ");
  const HttpServer server(options(8), echo);
  Clients silent = silent_clients(server, 20, said);
  CHECK(answers(server));
  for (std::size_t k = 0; k < 12; ++k) CHECK(silent[k]->hangs_up());
  silent.back()->send(*said == '\0' || said[1] == '\0' ? "ET / HTTP/1.1\r\n\r\n" : "1\r\n\r\n");
  if (*said != '\0') CHECK(silent.back()->answer().status == 200);  // the newest did not
}

TEST_CASE("who awaits an answer does not give way, and the others wait for their turn") {
  std::vector<HttpAnswerLater> waiting;
  std::mutex mutex;
  const HttpServer server(options(2), [&](const HttpRequest& request, HttpAnswerLater later) {
    const std::lock_guard lock(mutex);
    if (request.path == "/now") return std::optional(HttpReply{.body = "now"});
    waiting.push_back(std::move(later));
    return std::optional<HttpReply>();
  });
  Clients slow = silent_clients(server, 2, HttpClient::request("GET", "/slow"));
  const auto both = [&] {
    const std::lock_guard lock(mutex);
    return waiting.size() == 2;
  };
  while (!both()) std::this_thread::sleep_for(1ms);
  HttpClient third(server.address().port);  // in the listener's queue
  third.send(HttpClient::request("GET", "/now"));
  for (const auto& later : waiting) later([] { return HttpReply{.body = "late"}; });
  for (auto& client : slow) CHECK(client->answer().body == "late");
  CHECK(third.answer().body == "now");
}

TEST_CASE("a process without descriptors goes on answering once some give way") {
  skip_without_descriptors_for_sanitizers();
  const HttpServer server(options(), echo);
  Clients silent = silent_clients(server, 40, "G");
  // The last one is told that its request is none: the server has accepted all.
  silent.back()->send("\r\n\r\n");
  CHECK(silent.back()->hangs_up());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  REQUIRE(next >= 0);
  ::close(next);
  rlimit few = before;
  few.rlim_cur = rlim_t(next) + 1;  // one for the client, none for the server
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  bool answered = false;
  try {
    answered = answers(server);
  } catch (const SocketError& e) {
    UNSCOPED_INFO(e.what());
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(answered);
}

TEST_CASE("a header that trickles in and a body that stops are given up") {
  HttpOptions hasty = options();
  hasty.header_patience = hasty.body_patience = hasty.idle_patience = 100ms;
  const HttpServer server(hasty, echo);
  HttpClient idle(server.address().port), half(server.address().port), slow(server.address().port);
  half.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n12345");
  CHECK(idle.hangs_up());
  CHECK(half.hangs_up());
  // Each byte comes well before the deadline; all of them together do not.
  std::atomic<bool> closed{false};
  std::thread sender([&] {
    try {
      slow.send("GET / HTTP/1.1\r\nX: ");
      while (!closed) {
        slow.send("a");
        std::this_thread::sleep_for(10ms);
      }
    } catch (const SocketError&) {
    }
  });
  CHECK(slow.hangs_up());
  closed = true;
  sender.join();
}

TEST_CASE("bodies and headers larger than their bounds are refused") {
  const HttpServer server(options(), echo);
  HttpClient large(server.address().port), chunked(server.address().port);
  const auto refused = large.post("/", std::string(1025, 'x'));
  CHECK(refused.status == 413);
  CHECK(refused.last);
  chunked.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n401\r\n" +
               std::string(1025, 'x') + "\r\n0\r\n\r\n");
  CHECK(chunked.answer().status == 413);
  HttpClient header(server.address().port);
  header.send("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n");
  CHECK(header.hangs_up());
  CHECK(HttpClient(server.address().port).post("/", std::string(1024, 'x')).status == 200);
}

TEST_CASE("a token is asked for, but not by probes") {
  HttpOptions guarded = options();
  guarded.token = "s3cret-token";
  guarded.open_paths = {"/healthz"};
  const HttpServer server(guarded, echo);
  const std::uint16_t port = server.address().port;
  const auto ask = [&](const std::string& path, const std::string& authorization) {
    HttpClient client(port);
    client.send("GET " + path + " HTTP/1.1\r\n" +
                (authorization.empty() ? "" : "Authorization: " + authorization + "\r\n") + "\r\n");
    return client.answer();
  };
  CHECK(ask("/healthz", "").status == 200);
  CHECK(ask("/healthz?x", "").status == 200);
  CHECK(ask("/a", "Bearer s3cret-token").status == 200);
  CHECK(ask("/a", "bearer s3cret-token").body == "GET /a ");
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer s3cret-toke", "Bearer s3cret-tokem",
                            "Bearer s3cret-token2", "Basic s3cret-token", "s3cret-token"}) {
    INFO(wrong);
    const auto refused = ask("/a", wrong);
    CHECK(refused.status == 401);
    CHECK_THAT(refused.head, Catch::Contains("\r\nWWW-Authenticate: Bearer realm=\"reckon\"\r\n"));
  }
  // A body is not read before the token.
  HttpClient body(port);
  body.send("POST /a HTTP/1.1\r\nContent-Length: 1000\r\n\r\n");
  CHECK(body.answer().status == 401);
}

TEST_CASE("a token file holds one word") {
  const auto file =
      std::filesystem::temp_directory_path() / ("reckon-token-" + std::to_string(::getpid()));
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    return read_token_file(file);
  };
  CHECK(read("abc\n") == "abc");
  CHECK(read("  a.b-c_d=\r\n") == "a.b-c_d=");
  for (const std::string& wrong :
       {std::string(), std::string("\n"), std::string("two words\n"), std::string("a\nb\n"),
        std::string("\xc3\xa4"), std::string(5000, 'x'), std::string("a\0b", 3)})
    CHECK_THROWS_WITH(read(wrong), Catch::Contains("needs one word"));
  std::filesystem::remove(file);
  CHECK_THROWS_WITH(read_token_file(file), Catch::Contains("cannot be read"));
}

TEST_CASE("an answer that comes when the server is no more goes nowhere") {
  HttpAnswerLater later;
  std::atomic<bool> asked{false};
  auto server = std::make_unique<HttpServer>(
      options(), [&](const HttpRequest&, HttpAnswerLater given) -> std::optional<HttpReply> {
        later = std::move(given);
        asked = true;
        return std::nullopt;
      });
  HttpClient client(server->address().port);
  client.send(HttpClient::request("GET", "/"));
  while (!asked) std::this_thread::sleep_for(1ms);
  server.reset();
  later([]() -> HttpReply { throw std::logic_error("nobody asks for this"); });
  CHECK(client.hangs_up());
}

TEST_CASE("a process takes no more connections than half of its descriptors") {
  rlimit files{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
  CHECK(most_connections(1) == 1);
  CHECK(most_connections(SIZE_MAX) <= std::max<std::size_t>(1, files.rlim_cur / 2));
}

TEST_CASE("a page is opened by a link with its token, at the server's own address") {
  HttpOptions o = options();
  o.token = "abc";
  o.token_in_link = true;
  o.own_host_only = true;
  o.fields = {{"X-Mine", "yes"}};
  const HttpServer server(o, echo);
  const std::string own = text(server.address());
  const auto get = [&](const std::string& target, const std::string& host,
                       const std::string& lines = "") {
    HttpClient client(server.address().port);
    client.send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + lines + "\r\n");
    return client.answer();
  };
  CHECK(get("/?token=abc", own).status == 200);
  CHECK(get("/?a=b&token=abc", own).body == "GET / ");
  CHECK(get("/?token=abc", "localhost:" + std::to_string(server.address().port)).status == 200);
  CHECK(get("/", own, "Authorization: Bearer abc\r\n").status == 200);
  for (const char* target : {"/", "/?token=", "/?token=abd", "/?token=abcd", "/?nottoken=abc"})
    CHECK(get(target, own).status == 401);
  for (const char* host : {"evil.example", "127.0.0.1", "localhost", ""})
    CHECK(get("/?token=abc", host).status == 403);
  CHECK(get("/", own).head.find("X-Mine: yes") != std::string::npos);
  HttpClient poster(server.address().port);
  poster.send("POST /?token=abc HTTP/1.1\r\nHost: " + own + "\r\nContent-Length: 0\r\n\r\n");
  CHECK(poster.answer().status == 401);
}
