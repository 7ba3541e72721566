#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "executor/comm/job.h"
#include "executor/comm/rendezvous/handshake.h"

namespace {
using namespace reckon;

std::string list_of(const Membership& membership) {
  std::string list;
  for (const Member& m : membership.members())
    list += fmt::format("{} {} {}\n", m.rank, int(m.role), m.address.port);
  return list;
}
}  // namespace

TEST_CASE("every rank gets the same list of all members, in the order of the ranks") {
  LocalJob job(5);
  const auto outcomes = run_processes(5, [&](int rank) {
    job.options.role = rank == 4 ? Role::parameter_server : Role::worker;
    job.options.port = std::uint16_t(rank == 4 ? 4444 : 0);
    return list_of(*job.join(rank));
  });
  for (const ProcessOutcome& outcome : outcomes) {
    CHECK(outcome.code == 0);
    CHECK(outcome.output == "0 0 0\n1 0 0\n2 0 0\n3 0 0\n4 2 4444\n");
  }
}

TEST_CASE("who is missing at the deadline is named, by every rank that is there") {
  LocalJob job(4);
  job.options.deadline =
      Seconds{3};  // those that come prove themselves sooner, on busy machines too
  const auto outcomes = run_processes(4, [&](int rank) -> std::string {
    if (rank == 1 || rank == 3) return "never comes";
    job.join(rank);
    return "joined";
  });
  for (const int rank : {0, 2}) {
    CHECK(outcomes[std::size_t(rank)].code == kExitLostPeer);
    CHECK_THAT(outcomes[std::size_t(rank)].output,
               Catch::Contains("2 of 4 ranks are missing after 3 s: rank 1, rank 3"));
  }
}

TEST_CASE("a rank that registers and dies before all are there is named as such") {
  LocalJob job(3);
  job.options.deadline = Seconds{4};
  const auto outcomes = run_processes(3, [&](int rank) -> std::string {
    if (rank == 2) return "never comes";
    if (rank == 1) alarm(1);  // SIGALRM ends it while it waits
    job.join(rank);
    return "joined";
  });
  CHECK(outcomes[1].code == 128 + SIGALRM);
  CHECK_THAT(outcomes[0].output,
             Catch::Contains("rank 1 (was there, but its process ended), rank 2"));
}

TEST_CASE("without a rank 0 the error says where nobody answers") {
  RendezvousOptions options{
      .secret = JobSecret::random(), .rank = 1, .size = 2, .deadline = Seconds{0.2}};
  {
    const Socket free_port = listen_on({"127.0.0.1", 0});
    options.master = free_port.local();
  }
  CHECK_THROWS_WITH(Membership::join(options),
                    Catch::Contains("rank 0 does not answer for 0.2 s") &&
                        Catch::Contains(text(options.master)) && Catch::Contains("MASTER_ADDR"));
}

TEST_CASE("a port in use is said, with what to do") {
  const Socket taken = listen_on({"127.0.0.1", 0});
  RendezvousOptions options{
      .secret = JobSecret::random(), .size = 1, .master = taken.local(), .deadline = Seconds{1}};
  CHECK_THROWS_WITH(Membership::join(options),
                    Catch::Contains(fmt::format("port {} is in use", options.master.port)) &&
                        Catch::Contains("MASTER_PORT"));
}

TEST_CASE("a process without descriptors says so") {
  const int left = GENERATE(0, 1);  // none for itself, or none for the others of the job
  LocalJob job(1);
  const auto outcomes = run_processes(1, [&](int rank) -> std::string {
    const int next = dup(0);  // all below it are taken
    close(next);
    const rlimit few{.rlim_cur = rlim_t(next + left), .rlim_max = rlim_t(next + left)};
    setrlimit(RLIMIT_NOFILE, &few);
    return list_of(*job.join(rank));
  });
  CHECK(outcomes[0].code == kExitLostPeer);
  CHECK_THAT(outcomes[0].output,
             Catch::Contains(fmt::format("'reckon': {}: Too many open files",
                                         left == 0 ? "eventfd" : "socketpair")));
}

TEST_CASE("ranks of another job, another size or a rank that is there twice are turned away") {
  LocalJob job(2);
  // Rank 0 and a good rank 1, after three wrong ones that came before it.
  const auto outcomes = run_processes(5, [&](int process) -> std::string {
    RendezvousOptions& o = job.options;
    if (process == 0) return list_of(*job.join(0));
    if (process == 1) o.job = "other";
    if (process == 2) o.size = 3;
    if (process == 3) {
      job.listener.close();
      o.rank = 0;  // a second rank 0 whose master is the first: its own listener fails
      return list_of(*Membership::join(o));
    }
    if (process == 4) {
      // Comes when the wrong ones have been turned away: they answer within the deadline.
      const Deadline wait = Deadline::after(Seconds{0.3});
      while (!wait.passed()) usleep(10'000);
    }
    return list_of(*job.join(1));
  });
  CHECK(outcomes[0].code == 0);
  CHECK(outcomes[4].code == 0);
  CHECK_THAT(outcomes[1].output,
             Catch::Contains("rendezvous of job 'reckon', not of 'other': if this process belongs "
                             "to it, start it with --job reckon"));
  CHECK_THAT(outcomes[2].output,
             Catch::Contains("rank 1 says that the world size is 3; rank 0 says 2"));
  CHECK_THAT(outcomes[3].output, Catch::Contains("is in use"));
}

TEST_CASE("two processes with the same rank: the second is told of the first") {
  LocalJob job(3);
  job.options.deadline = Seconds{0.6};
  const auto outcomes = run_processes(3, [&](int process) -> std::string {
    if (process == 0) return list_of(*job.join(0));
    return list_of(*job.join(1));
  });
  // One of the two holds rank 1 until the deadline, at which rank 2 is missing.
  const std::string both = outcomes[1].output + outcomes[2].output;
  CHECK_THAT(both, Catch::Contains("rank 1 is there already: process "));
  CHECK_THAT(both, Catch::Contains("1 of 3 ranks are missing after 0.6 s: rank 2"));
}

TEST_CASE("an answer that comes after its deadline is not taken for that to the next question") {
  LocalJob job(2);
  RendezvousOptions of_second = job.options;
  of_second.rank = 1;
  auto joining = std::async(std::launch::async, [&] { return Membership::join(of_second); });
  const auto first = Membership::join(job.options, std::move(job.listener));
  const auto second = joining.get();
  const auto bytes = [](std::string_view text) {
    const auto view = std::as_bytes(std::span(text));
    return std::vector<std::byte>(view.begin(), view.end());
  };
  CHECK_THROWS_WITH(second->get("late", Deadline::after(Seconds{0.1})),
                    Catch::Contains("nobody has set 'late' in time"));
  first->set("late", bytes("the late one"));  // sent to who has asked
  first->set("next", bytes("the next one"));
  CHECK(second->get("next", Deadline::after(Seconds{10})) == bytes("the next one"));
  CHECK(second->get("late", Deadline::after(Seconds{10})) == bytes("the late one"));
}

TEST_CASE(
    "a new attempt waits for the old one to give up its port, a late rank of the old is told") {
  LocalJob job(1);
  job.options.attempt = 1;
  const HostPort master = job.listener.local();
  const auto old_attempt = job.join(0);
  RendezvousOptions late{
      .secret = job.options.secret, .attempt = 0, .rank = 1, .size = 2, .master = master};
  // Attempt 0's rank 1 meets attempt 1's rank 0.
  CHECK_THROWS_WITH(Membership::join(late), Catch::Contains("attempt 0 of the job is over"));
  // Attempt 2's rank 1 waits for attempt 2's rank 0 until its deadline.
  RendezvousOptions early{.secret = job.options.secret,
                          .attempt = 2,
                          .rank = 1,
                          .size = 2,
                          .master = master,
                          .deadline = Seconds{0.3}};
  CHECK_THROWS_WITH(Membership::join(early), Catch::Contains("attempt 1 still holds"));
}

TEST_CASE("a rank that meets rank 0 of the attempt before on its way out asks again") {
  LocalJob job(2);
  job.options.attempt = 3;
  const auto outcomes = run_processes(2, [&](int rank) -> std::string {
    if (rank == 0) {  // as the one before: it proves itself, and is gone
      const Socket before = accept_one(job.listener, Deadline::after(Seconds{20})).value();
      AcceptorHandshake handshake(job.options.secret, {Listening::As::coordinator, 0},
                                  random_nonce());
      while (handshake.wanted() > 0) {
        std::vector<std::byte> bytes(handshake.wanted());
        receive_all(before, bytes, Deadline::after(Seconds{20}));
        send_all(before, handshake.take(bytes), Deadline::after(Seconds{20}));
      }
    }
    return list_of(*job.join(rank));
  });
  CHECK(outcomes[0].output == "0 0 0\n1 0 0\n");
  CHECK(outcomes[1].output == outcomes[0].output);
}

TEST_CASE("a stranger that speaks another protocol disturbs nobody") {
  LocalJob job(2);
  const HostPort master = job.options.master;
  const auto outcomes = run_processes(3, [&](int process) -> std::string {
    if (process < 2) {
      if (process == 1) usleep(100'000);  // after the stranger, mostly; the result is the same
      return list_of(*job.join(process));
    }
    job.listener.close();
    const Socket socket = connect_to(master, Deadline::after(Seconds{5}));
    const std::string request =
        "GET / HTTP/1.1\r\nHost: nobody\r\nUser-Agent: a stranger's\r\n\r\n";
    send_all(socket, std::as_bytes(std::span(request)), Deadline::after(Seconds{1}));
    std::array<std::byte, 16> answer{};
    try {
      receive_all(socket, answer, Deadline::after(Seconds{5}));
    } catch (const SocketError& error) {
      return error.kind == SocketError::Kind::closed ? "turned away" : error.what();
    }
    return "answered";
  });
  CHECK(outcomes[0].output == "0 0 0\n1 0 0\n");
  CHECK(outcomes[1].output == outcomes[0].output);
  CHECK(outcomes[2].output == "turned away");
}

TEST_CASE("a name and an IPv6 address serve as the master's") {
  for (const std::string host : {"localhost", "::1"}) {
    Socket listener;
    try {
      listener = listen_on({host, 0});
    } catch (const SocketError&) {
      if (host == "::1") return;  // no IPv6 on this machine
      throw;
    }
    const std::uint16_t port = listener.local().port;
    const JobSecret secret = JobSecret::random();
    const auto outcomes = run_processes(2, [&](int rank) {
      RendezvousOptions options{.secret = secret, .rank = rank, .size = 2, .master = {host, port}};
      if (rank == 0) return list_of(*Membership::join(options, std::move(listener)));
      listener.close();
      return list_of(*Membership::join(options));
    });
    CHECK(outcomes[0].output == "0 0 0\n1 0 0\n");
    CHECK(outcomes[1].output == outcomes[0].output);
  }
}

TEST_CASE("a rank that was turned away and did not come again is named with the reason") {
  LocalJob job(2);
  job.options.deadline = Seconds{3};
  const int differs = GENERATE(0, 1, 2);
  std::string warned;
  const auto outcomes = run_processes(2, [&](int rank) -> std::string {
    job.options.attempt = 1;
    if (rank == 1 && differs == 0) job.options.job = "other";
    if (rank == 1 && differs == 1) job.options.attempt = 2;
    if (rank == 1 && differs == 2) job.options.size = 3;
    job.options.warn = [&](const std::string& text) { warned += text + '\n'; };
    try {
      job.join(rank);
    } catch (const CommError& error) {
      throw CommError(warned + error.what());
    }
    return "joined";
  });
  const std::string why = differs == 0   ? "it is of job 'other', this is 'reckon'"
                          : differs == 1 ? "it is of attempt 2, this is attempt 1"
                                         : "it says that the world size is 3, rank 0 says 2";
  CHECK_THAT(outcomes[0].output, Catch::Contains("rank 1 (turned away: " + why + ")"));
  CHECK_THAT(outcomes[0].output, Catch::Contains(") is turned away, " + why + "\n"));
  if (differs == 1) CHECK_THAT(outcomes[1].output, Catch::Contains("attempt 1 still holds"));
}

TEST_CASE("who waits says where and for whom, after a while and then now and then") {
  LocalJob job(4);
  job.options.deadline = Seconds{3};
  job.options.quiet = Seconds{0.5};
  const HostPort master = job.options.master;
  const auto outcomes = run_processes(4, [&](int rank) -> std::string {
    std::string said;
    job.options.waiting = [&](const std::string& text) { said += text + '\n'; };
    if (rank == 1 || rank == 3) job.options.master = {"no-such-host.invalid", 1};
    try {
      job.join(rank);
    } catch (const CommError&) {
    }
    return said;
  });
  const std::string at_master = "waiting at " + text(master) + " for ranks 1, 3 of 4\n";
  CHECK(outcomes[0].output == at_master + at_master);  // at 0.5 s and 2 s
  CHECK_THAT(outcomes[2].output, Catch::StartsWith("rank 0 at " + text(master) +
                                                   " waits for others of the job, trying for"));
  CHECK_THAT(outcomes[1].output, Catch::StartsWith("cannot connect to no-such-host.invalid:1: "
                                                   "'no-such-host.invalid' is no address: ") &&
                                     Catch::Contains("trying for another "));
}

TEST_CASE("the store gives what another rank has set, and waits for it") {
  LocalJob job(3);
  const auto outcomes = run_processes(3, [&](int rank) {
    const auto membership = job.join(rank);
    const std::string mine = fmt::format("of rank {}", rank);
    membership->set(fmt::format("key {}", rank), std::as_bytes(std::span(mine)));
    const auto next =
        membership->get(fmt::format("key {}", (rank + 1) % 3), Deadline::after(Seconds{10}));
    return std::string(reinterpret_cast<const char*>(next.data()), next.size());
  });
  for (int rank = 0; rank < 3; ++rank)
    CHECK(outcomes[std::size_t(rank)].output == fmt::format("of rank {}", (rank + 1) % 3));
}

TEST_CASE("all ranks blame the one that died first, also when rank 0 is it") {
  for (const int victim : {0, 2}) {
    LocalJob job(4);
    const auto outcomes = run_processes(4, [&](int rank) -> std::string {
      const auto membership = job.join(rank);
      membership->set(fmt::format("here {}", rank), {});
      if (rank == victim) {
        for (int r = 0; r < 4; ++r)
          membership->get(fmt::format("here {}", r), Deadline::after(Seconds{10}));
        kill(getpid(), SIGKILL);
      }
      throw membership->lost_peer("test", Seconds{10});
    });
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      CHECK(outcomes[std::size_t(rank)].code == kExitLostPeer);
      CHECK_THAT(outcomes[std::size_t(rank)].output,
                 Catch::Contains(fmt::format("answer: rank {} (worker on", victim)));
    }
  }
}

TEST_CASE("who does not ask whose fault it is, hangs") {
  LocalJob job(3);
  const auto outcomes = run_processes(3, [&](int rank) -> std::string {
    const auto membership = job.join(rank);
    if (rank == 1) {  // alive, connected, busy with something else until it hears the verdict
      try {
        membership->get("never set", Deadline::after(Seconds{10}));
      } catch (const CommError& error) {
        return error.what();
      }
    }
    throw membership->lost_peer("test", Seconds{0.2});
  });
  CHECK_THAT(outcomes[0].output, Catch::Contains("without an answer: rank 1 (worker"));
  CHECK_THAT(outcomes[2].output, Catch::Contains("without an answer: rank 1 (worker"));
  CHECK_THAT(outcomes[1].output, Catch::Contains("rank 1 (worker"));
}

TEST_CASE("a loss is told to who has asked for the news, once, and a goodbye is no loss") {
  const bool killed = GENERATE(false, true);
  LocalJob job(3);
  const auto outcomes = run_processes(3, [&](int rank) -> std::string {
    const auto membership = job.join(rank);
    std::promise<void> lost;
    int calls = 0;
    membership->on_loss([&] {
      if (++calls == 1) lost.set_value();
    });
    membership->set(fmt::format("here {}", rank), {});
    for (int r = 0; r < 3; ++r)
      membership->get(fmt::format("here {}", r), Deadline::after(Seconds{10}));
    membership->set(fmt::format("saw all {}", rank), {});
    if (rank == 1)  // not before the others have read what they wait for
      for (const int r : {0, 2})
        membership->get(fmt::format("saw all {}", r), Deadline::after(Seconds{10}));
    if (rank == 1 && killed) kill(getpid(), SIGKILL);
    if (rank == 1) return "left";
    if (killed) {
      lost.get_future().wait();
      bool late = false;  // known already: told at once
      membership->on_loss([&] { late = true; });
      return fmt::format("{} {}", calls, late);
    }
    // Rank 1 has left; what the others still say to each other arrives.
    membership->set(fmt::format("done {}", rank), {});
    membership->get(fmt::format("done {}", 2 - rank), Deadline::after(Seconds{10}));
    return fmt::format("{}", calls);
  });
  CHECK(outcomes[0].output == (killed ? "1 true" : "0"));
  CHECK(outcomes[2].output == (killed ? "1 true" : "0"));
}
