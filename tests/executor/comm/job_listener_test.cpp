#include "executor/comm/rendezvous/job_listener.h"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <list>
#include <thread>

#include <fmt/format.h>

#include "executor/comm/channel.h"
#include "executor/comm/strangers.h"
#include "support/processes.h"
#include "support/skip.h"

// How many connections wait at a job's port, and who gives way.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("more connections than may wait: the oldest that said nothing gives way") {
  Socket socket = listen_on({"127.0.0.1", 0});
  const HostPort at = socket.local();
  const JobSecret secret = JobSecret::random();
  JobListener listener(std::move(socket), secret, kCoordinatorPort, {}, {.pending = 4});
  // The first has said hello, and is in no hurry with its proof.
  const Socket first = connect_to(at, within_seconds());
  ConnectorHandshake handshake(secret, kCoordinatorPort, {"job", 3}, random_nonce());
  send_all(first, handshake.hello(), within_seconds());
  std::array<std::byte, 72> challenge{};
  for (const Deadline until = within_seconds(); !until.passed(); usleep(1000)) {
    CHECK(listener.admit().empty());
    if (wait_readable(first, Deadline::after(Seconds{}))) break;
  }
  receive_all(first, challenge, within_seconds());
  const auto silent = connections(at, 20);
  const std::string all = "17 connections were turned away: 17 gave way to newer ones";
  for (const Deadline until = within_seconds(); !until.passed() && listener.turned_away() != all;
       usleep(1000))
    CHECK(listener.admit().empty());
  CHECK(listener.turned_away() == "17 connections were turned away: 17 gave way to newer ones");
  handshake.take(std::span(challenge).first(8));
  send_all(first, handshake.take(std::span(challenge).subspan(8)), within_seconds());
  std::size_t admitted = 0;
  for (const Deadline until = within_seconds(); admitted == 0 && !until.passed(); usleep(1000))
    admitted += listener.admit().size();
  CHECK(admitted == 1);
}

TEST_CASE("no connection gives way before it had time for its proof, the next ones wait") {
  Socket socket = listen_on({"127.0.0.1", 0});
  const HostPort at = socket.local();
  JobListener listener(std::move(socket), JobSecret::random(), kCoordinatorPort, {},
                       {.pending = 4, .heard = Seconds{60}});
  const auto silent = connections(at, 20);
  CHECK(listener.admit().empty());
  CHECK(listener.admit().empty());  // sees that it is full
  CHECK(listener.turned_away().empty());
  std::vector<pollfd> waits;
  listener.add_to(waits);
  CHECK(waits.size() == 5);
  CHECK(waits[0].fd == -1);  // it does not look at the queue
  CHECK(listener.due_milliseconds() > 0);
}

TEST_CASE("where one address has many connections, those of others do not give way") {
  Socket socket = listen_on({"127.0.0.1", 0});
  const HostPort at = socket.local();
  JobListener listener(std::move(socket), JobSecret::random(), kCoordinatorPort, {},
                       {.pending = 4, .heard = Seconds{0}});
  const Socket other = connect_from("127.0.0.2", at);
  CHECK(listener.admit().empty());
  const auto many = connections(at, 20);
  CHECK(listener.admit().empty());
  for (const Deadline until = within_seconds(); !until.passed(); usleep(1000)) {
    CHECK(listener.admit().empty());
    if (listener.turned_away() == "17 connections were turned away: 17 gave way to newer ones")
      break;
  }
  CHECK(listener.turned_away() == "17 connections were turned away: 17 gave way to newer ones");
  CHECK_FALSE(wait_readable(other, Deadline::after(Seconds{0.05})));  // not closed
}

TEST_CASE("a job of many processes that come at once is not turned away") {
  constexpr std::size_t kProcesses = 160;  // 128 and more
  Socket socket = listen_on({"127.0.0.1", 0});
  const HostPort at = socket.local();
  const JobSecret secret = JobSecret::random();
  std::list<std::pair<Socket, ConnectorHandshake>> all;
  for (std::uint32_t rank = 0; rank < kProcesses; ++rank) {
    all.emplace_back(connect_to(at, within_seconds()),
                     ConnectorHandshake(secret, kCoordinatorPort, {"job", rank}, random_nonce()));
    send_all(all.back().first, all.back().second.hello(), within_seconds());
  }
  JobListener listener(std::move(socket), secret, kCoordinatorPort, {},
                       JobListenerLimits::for_processes(int(kProcesses)));
  for (const Deadline until = within_seconds(); !until.passed(); usleep(1000)) {
    CHECK(listener.admit().empty());
    if (wait_readable(all.back().first, Deadline::after(Seconds{}))) break;
  }
  for (auto& [connection, handshake] : all) {
    std::array<std::byte, 72> challenge{};
    receive_all(connection, challenge, within_seconds());
    handshake.take(std::span(challenge).first(8));
    send_all(connection, handshake.take(std::span(challenge).subspan(8)), within_seconds());
  }
  std::size_t admitted = 0;
  for (const Deadline until = within_seconds(); admitted < kProcesses && !until.passed();
       usleep(1000))
    admitted += listener.admit().size();
  CHECK(admitted == kProcesses);
  CHECK(listener.turned_away().empty());
}

TEST_CASE("strangers are said once, and counted") {
  std::vector<std::string> said;
  {
    Socket socket = listen_on({"127.0.0.1", 0});
    const HostPort at = socket.local();
    JobListener listener(std::move(socket), JobSecret::random(), kCoordinatorPort,
                         [&](const std::string& text) { said.push_back(text); },
                         {.hello = Seconds{0.2}});
    const auto silent = connections(at, 20);
    connections(at, 10);
    const Socket browser = connect_to(at, within_seconds());
    const std::string request = "GET / HTTP/1.1\r\n\r\n";
    send_all(browser, std::as_bytes(std::span(request)), within_seconds());
    const Deadline until = Deadline::after(Seconds{2});
    while (!until.passed() && listener.turned_away().find("31 connections") == std::string::npos) {
      CHECK(listener.admit().empty());
      usleep(10'000);
    }
    CHECK(listener.turned_away() ==
          "31 connections were turned away: 20 said nothing in time, 10 closed without a proof, 1 "
          "spoke another protocol");
    CHECK(said.size() == 1);
    CHECK(listener.due_milliseconds() == -1);
  }
  REQUIRE(said.size() == 2);
  CHECK_THAT(said[0], Catch::StartsWith("a connection ") && Catch::Contains("was turned away"));
  CHECK_THAT(said[1], Catch::StartsWith("31 connections were turned away"));
}

TEST_CASE(
    "a process without descriptors lets connections wait, and takes them up when it has some") {
  skip_without_descriptors_for_sanitizers();
  const auto outcomes = run_processes(1, [](int) -> std::string {
    Socket socket = listen_on({"127.0.0.1", 0});
    const HostPort at = socket.local();
    const JobSecret secret = JobSecret::random();
    JobListener listener(std::move(socket), secret, kCoordinatorPort, {});
    std::string peer;
    std::thread worker([&] {
      try {
        connect_to_process(at, secret, kCoordinatorPort, {"job", 1}, Deadline::after(Seconds{10}));
      } catch (const std::exception& error) {
        peer = error.what();
      }
    });
    usleep(200'000);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit none{.rlim_cur = 3, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    std::string result;
    if (!listener.admit().empty()) result += "admitted without a descriptor; ";
    if (const int due = listener.due_milliseconds(); due < 1 || due > 200)
      result += fmt::format("looks again in {} ms; ", due);
    setrlimit(RLIMIT_NOFILE, &limit);
    std::size_t admitted = 0;
    for (const Deadline until = within_seconds(); admitted == 0 && !until.passed(); usleep(10'000))
      admitted += listener.admit().size();
    worker.join();
    return result + peer + fmt::format("{} admitted", admitted);
  });
  CHECK(outcomes[0].output == "1 admitted");
}
