#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <list>
#include <thread>

#include "executor/comm/channel.h"
#include "executor/comm/parameter_server/server/protocol.h"
#include "executor/comm/rendezvous/coordinator.h"
#include "executor/comm/server_job.h"
#include "executor/comm/strangers.h"
#include "support/listening.h"
#include "support/skip.h"

// What strangers can do to a job: those who reach its ports and do not know its secret.
namespace {
using namespace reckon;
using namespace reckon::test;

constexpr Listening kServerPort{Listening::As::parameter_server, 1};

/// All that the other side says until it closes.
std::size_t bytes_until_closed(const Socket& socket, Deadline deadline) {
  std::array<std::byte, 65536> piece{};
  std::size_t all = 0;
  try {
    while (wait_readable(socket, deadline)) all += receive_some(socket, piece);
  } catch (const SocketError& error) {
    REQUIRE(error.kind == SocketError::Kind::closed);
    return all;
  }
  FAIL("it is not closed");
  return all;
}

/// Passes bytes on between one connection at `listener` and `to`; keeps those of whoever connected.
class Recorder {
 public:
  Recorder(Socket listener, const HostPort& to)
      : thread_([this, listener = std::move(listener), to] { run(listener, to); }) {}
  ~Recorder() { thread_.join(); }
  /// Once the connection is over.
  std::vector<std::byte> recorded() {
    while (!over_) usleep(10'000);
    return said_;
  }

 private:
  void run(const Socket& listener, const HostPort& to) {
    try {
      const auto one = accept_one(listener, Deadline::after(Seconds{20}));
      if (!one) throw SocketError(SocketError::Kind::timeout, "nobody came");
      const Socket other = connect_to(to, within_seconds());
      std::array<std::byte, 4096> piece{};
      while (true) {
        std::size_t got = receive_some(*one, piece);
        said_.insert(said_.end(), piece.begin(), piece.begin() + std::ptrdiff_t(got));
        if (got > 0) send_all(other, std::span(piece).first(got), within_seconds());
        got = receive_some(other, piece);
        if (got > 0) send_all(*one, std::span(piece).first(got), within_seconds());
        usleep(1000);
      }
    } catch (const SocketError&) {
      over_ = true;
    }
  }
  std::vector<std::byte> said_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

/// Of the next process of the job that comes.
Channel admitted_channel(const Socket& listener, const JobSecret& secret) {
  Socket socket = accept_one(listener, within_seconds()).value();
  AcceptorHandshake handshake(secret, kCoordinatorPort, random_nonce());
  while (handshake.wanted() > 0) {
    std::vector<std::byte> bytes(handshake.wanted());
    receive_all(socket, bytes, within_seconds());
    send_all(socket, handshake.take(bytes), within_seconds());
  }
  return {std::move(socket), handshake.keys()};
}

std::string joined(const Membership& membership) {
  return fmt::format("{} members", membership.members().size());
}
}  // namespace

TEST_CASE("a stranger without the secret takes no rank, and both sides say what is wrong") {
  LocalJob job(2);
  const auto outcomes = run_processes(3, [&](int process) -> std::string {
    if (process == 2) {
      job.options.secret = JobSecret::random();
      return joined(*job.join(1));
    }
    std::string warned;
    job.options.warn = [&](const std::string& text) { warned += text + '\n'; };
    if (process == 1) usleep(300'000);  // the stranger is there first
    const auto membership = job.join(process);
    return joined(*membership) + '\n' + warned;
  });
  CHECK(outcomes[2].code == kExitLostPeer);
  CHECK_THAT(outcomes[2].output, Catch::Contains("knows another secret: give all processes of a "
                                                 "job the same --secret-file"));
  CHECK(outcomes[1].output == "2 members\n");
  CHECK_THAT(outcomes[0].output, Catch::StartsWith("2 members\n") &&
                                     Catch::Contains("was turned away: it knows another secret"));
}

TEST_CASE("who is missing and who knew another secret is said together at the deadline") {
  LocalJob job(2);
  job.options.deadline = Seconds{0.6};
  const auto outcomes = run_processes(2, [&](int rank) {
    if (rank == 1) job.options.secret = JobSecret::random();
    return joined(*job.join(rank));
  });
  CHECK_THAT(outcomes[0].output,
             Catch::Contains("rank 1; 1 connection was turned away: 1 knew another secret"));
}

TEST_CASE("silent connections, 200 of them, delay no start, a few more are there each moment") {
  LocalJob job(3);
  const HostPort master = job.options.master;
  const auto strangers = connections(master, 200);  // in the system's queue before anybody else
  const auto begin = Deadline::Clock::now();
  const auto outcomes = run_processes(3, [&](int rank) {
    if (rank == 1) usleep(200'000);
    if (rank == 2)
      for (int k = 0; k < 20; ++k) connections(master, 10);  // opened and closed
    const auto membership = job.join(rank);
    membership->set(fmt::format("here {}", rank), {});
    for (int r = 0; r < 3; ++r)
      membership->get(fmt::format("here {}", r), Deadline::after(Seconds{10}));
    return joined(*membership);
  });
  for (const ProcessOutcome& outcome : outcomes) CHECK(outcome.output == "3 members");
  // Were they heard one after the other, or kept as long as a hello may take, it would be 5 s.
  CHECK(Seconds{Deadline::Clock::now() - begin}.count() < 4);
}

TEST_CASE("200 silent connections and 500 that open and close do not end a server") {
  const auto outcomes =
      run_ps_job(job_for(1, 1, SgdMomentum{}), [&](int rank, Membership& m, const ServerJob& job) {
        const HostPort server = m.members()[1].address;
        const auto silent = connections(server, 200);
        for (int k = 0; k < 50; ++k) connections(server, 10);
        const auto begin = Deadline::Clock::now();
        const std::string digest = train_worker(rank, m, job, 3);
        return fmt::format("{} {}", digest.empty() ? "nothing" : "trained",
                           Seconds{Deadline::Clock::now() - begin} < 4s ? "at once" : "late");
      });
  CHECK(outcomes[0].output == "trained at once");
  CHECK(outcomes[1].code == 0);
  CHECK_THAT(outcomes[1].output,
             Catch::StartsWith("9 "));  // 3 steps of 3 groups  // updates: 3 steps of 3 groups
}

TEST_CASE("a stranger gets no byte of parameters, and cannot end a server") {
  const ServerJob ps = job_for(1, 1, SgdMomentum{});
  const auto outcomes =
      run_ps_job(ps, [&](int, Membership& m, const ServerJob& job) -> std::string {
        const HostPort server = m.members()[1].address;
        const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
        LinearModel model(kLayers);
        exchange->start(model.view());
        // By another secret: refused before it can ask.
        try {
          connect_to_process(server, JobSecret::random(), kServerPort, {"reckon", 0},
                             within_seconds());
          return "a stranger was let in";
        } catch (const HandshakeError&) {
        }
        // By keys that it makes up: it goes on as if it had been let in.
        const Socket socket = connect_to(server, within_seconds());
        const JobSecret guessed = JobSecret::random();
        ConnectorHandshake handshake(guessed, kServerPort, {"reckon", 0}, random_nonce());
        send_all(socket, handshake.hello(), within_seconds());
        std::array<std::byte, 72> challenge{};
        receive_all(socket, challenge, within_seconds());
        std::vector<std::byte> noise(40);
        std::copy_n(challenge.begin(), 8, noise.begin());
        noise[6] = std::byte{3};  // a proof
        Gmac mac(guessed.key());
        const auto pull = encode_head(mac, 0, std::uint16_t(ServerMessage::pull), 0, 0, {});
        noise.insert(noise.end(), pull.begin(), pull.end());
        send_all(socket, noise, within_seconds());
        std::size_t got = 0;
        std::array<std::byte, 4096> piece{};
        try {
          while (wait_readable(socket, within_seconds())) got += receive_some(socket, piece);
        } catch (const SocketError&) {
        }
        for (int step = 0; step < 3; ++step) {
          model.announce(*exchange);
          exchange->finish_step(step, 0.01);
        }
        return fmt::format("{} bytes", got);
      });
  CHECK(outcomes[0].output == "0 bytes");
  CHECK(outcomes[1].code == 0);
}

TEST_CASE("a process that poses as a parameter server gets no gradients, and is found out") {
  LocalJob local(2);
  const ServerJob job = job_for(1, 1, SgdMomentum{});
  const auto outcomes = run_processes(2, [&](int rank) -> std::string {
    if (rank == 0) {
      const auto membership = local.join(0);
      try {
        make_ps_exchange(*membership, "reckon", job, Seconds{5});
      } catch (const CommError& error) {
        membership->set("over", {});
        throw;
      }
      return "it is believed";
    }
    Socket listener = listen_on({"127.0.0.1", 0});
    local.options.port = listener.local().port;
    const auto membership = local.join(1);
    const auto worker = accept_one(listener, within_seconds());
    // What it sends of itself until it is told something: a hello.
    std::array<std::byte, 62> hello{};
    receive_all(*worker, hello, within_seconds());
    AcceptorHandshake poser(JobSecret::random(), kServerPort, random_nonce());
    std::vector<std::byte> challenge;
    for (std::size_t at = 0; at < hello.size();) {
      const auto piece = std::span(hello).subspan(at, std::min(hello.size() - at, poser.wanted()));
      challenge = poser.take(piece);
      at += piece.size();
    }
    send_all(*worker, challenge, within_seconds());
    return fmt::format("{} bytes", bytes_until_closed(*worker, within_seconds()));
  });
  CHECK(outcomes[0].code == kExitLostPeer);
  CHECK_THAT(outcomes[0].output, Catch::Contains("rank 1") && Catch::Contains("another secret"));
  CHECK(outcomes[1].output == "72 bytes");  // that it is refused
}

TEST_CASE("what was recorded of a rank takes no place in the job's next start") {
  LocalJob first(2);
  const HostPort master = first.options.master;
  Socket relay = listen_on({"127.0.0.1", 0});
  const HostPort by_relay = relay.local();
  std::vector<std::byte> recorded;
  const auto outcomes = run_processes(
      2,
      [&](int rank) {
        if (rank == 1) first.options.master = by_relay;
        return joined(*first.join(rank));
      },
      Seconds{60},
      [&](const std::vector<pid_t>&) {
        first.listener.close();
        Recorder recorder(std::move(relay), master);
        recorded = recorder.recorded();
      });
  REQUIRE(outcomes[1].output == "2 members");
  REQUIRE(recorded.size() > 200);
  // The same job, attempt and secret: only the nonces differ.
  LocalJob second(2);
  second.options.secret = first.options.secret;
  const HostPort again = second.options.master;
  const auto later = run_processes(
      2,
      [&](int rank) {
        if (rank == 1) usleep(500'000);
        return joined(*second.join(rank));
      },
      Seconds{60},
      [&](const std::vector<pid_t>&) {
        second.listener.close();
        const Socket socket = connect_to(again, within_seconds());
        send_all(socket, recorded, within_seconds());
        // A challenge, and the end.
        CHECK(bytes_until_closed(socket, within_seconds()) <= 72);
      });
  CHECK(later[0].output == "2 members");
  CHECK(later[1].output == "2 members");
}

TEST_CASE("a start among more strangers than the process has descriptors") {
  skip_without_descriptors_for_sanitizers();
  LocalJob job(2);
  const auto strangers = connections(job.options.master, 100);
  const auto outcomes = run_processes(2, [&](int rank) {
    if (rank == 0) {
      const rlimit few{.rlim_cur = 130, .rlim_max = 130};  // this process has 100 of the test's
      setrlimit(RLIMIT_NOFILE, &few);
    } else {
      usleep(300'000);
    }
    return joined(*job.join(rank));
  });
  CHECK(outcomes[0].output == "2 members");
  CHECK(outcomes[1].output == "2 members");
}

TEST_CASE("strangers who come first to the ports of a collective take no rank's place") {
  need_gloo();
  const std::string says = GENERATE("", "GET / HTTP/1.1\r\n\r\n", std::string(4096, '\xff'));
  std::vector<Socket> strangers;
  const auto outcomes = run_gloo_job(
      3,
      [&](Communicator& communicator, Membership&) {
        std::array<double, 2> values{1, double(communicator.rank())};
        communicator.all_reduce(std::span<double>(values));
        return fmt::format("{} {}", values[0], values[1]);
      },
      {},
      [&](const std::vector<pid_t>& processes) {
        // Rank 2 comes late, so the ports at which the others wait for it are open meanwhile.
        const Deadline until = Deadline::after(Seconds{1});
        while (!until.passed())
          for (const std::uint16_t port : test::listeners_of(processes)) try {
              strangers.push_back(connect_to({"127.0.0.1", port}, Deadline::after(Seconds{0.1})));
              send_all(strangers.back(), std::as_bytes(std::span(says)), within_seconds());
            } catch (const SocketError&) {
            }
      },
      [](int rank) {
        if (rank == 2) usleep(600'000);
      });
  for (const ProcessOutcome& outcome : outcomes) CHECK(outcome.output == "3 3");
  CHECK(strangers.size() > 3);
}

TEST_CASE("a flood of hellos without a proof ends nobody's start") {
  LocalJob job(2);
  const HostPort master = job.options.master;
  const auto outcomes = run_processes(
      2,
      [&](int rank) {
        if (rank == 1) usleep(300'000);
        return joined(*job.join(rank));
      },
      Seconds{60},
      [&](const std::vector<pid_t>&) {
        job.listener.close();
        // Each says hello as a process of the job would, and nothing more; 400 are there at once.
        std::list<Socket> strangers;
        const ConnectorHandshake greeting(JobSecret::random(), kCoordinatorPort, {"reckon", 1},
                                          random_nonce());
        for (const Deadline until = Deadline::after(Seconds{1.5}); !until.passed();) try {
            strangers.push_back(connect_to(master, Deadline::after(Seconds{0.05})));
            send_all(strangers.back(), greeting.hello(), within_seconds());
            if (strangers.size() > 400) strangers.pop_front();
          } catch (const SocketError&) {  // the queue is full, or the job has begun and ended
          }
      });
  CHECK(outcomes[0].output == "2 members");
  CHECK(outcomes[1].output == "2 members");
}

TEST_CASE("a rank whose connection is closed before rank 0 answers it comes again") {
  LocalJob job(2);
  const auto outcomes = run_processes(2, [&](int rank) -> std::string {
    if (rank == 1) return joined(*job.join(rank));
    for (int k = 0; k < 2; ++k) {  // two connections that are closed once they are proved
      Channel one = admitted_channel(job.listener, job.options.secret);
      (void)receive_message(one, kRendezvousMessageLimit, within_seconds());
    }
    return joined(*job.join(rank));
  });
  CHECK(outcomes[0].output == "2 members");
  CHECK(outcomes[1].output == "2 members");
}
