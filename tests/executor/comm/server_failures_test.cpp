#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>

#include "executor/comm/channel.h"
#include "executor/comm/parameter_server/parameter_server.h"
#include "executor/comm/parameter_server/server/protocol.h"
#include "executor/comm/server_job.h"

// What becomes of a job with parameter servers when one of its processes fails or misbehaves.
namespace {
using namespace reckon;

Deadline soon() { return Deadline::after(Seconds{5}); }

/// A worker's connection to the server of a job with one of each, which has said hello.
Channel greeted_server(const Membership& m, const ServerJob& job) {
  Channel server = connect_to_process(m.members()[1].address, m.options().secret,
                                      {Listening::As::parameter_server, 1}, {"reckon", 0}, soon());
  send_message(server, std::uint16_t(ServerMessage::hello), 0, 0,
               encode(Greeting{.worker = 0, .digest = job.digest()}), soon());
  receive_message(server, 1000, soon());  // welcome
  return server;
}

/// What worker 0 says before it is welcomed, and its end right behind it: on a socket of this
/// machine both are there at once.
void greet_and_go(const sockaddr_un& server, socklen_t size, const JobSecret& secret,
                  const ServerJob& job) {
  Socket socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&server), size) == 0);
  ConnectorHandshake handshake(secret, {Listening::As::parameter_server, 0}, {"reckon", 0},
                               random_nonce());
  send_all(socket, handshake.hello(), soon());
  std::vector<std::byte> answer;
  while (handshake.wanted() > 0) {
    std::vector<std::byte> piece(handshake.wanted());
    receive_all(socket, piece, soon());
    answer = handshake.take(piece);
  }
  Gmac mac(handshake.keys().send);
  const auto greeting = encode(Greeting{.worker = 0, .digest = job.digest()});
  const auto head =
      encode_head(mac, 0, std::uint16_t(ServerMessage::hello), 0, 0, std::span(greeting));
  answer.insert(answer.end(), head.begin(), head.end());
  send_all(socket, answer, greeting, soon());
}
}  // namespace

TEST_CASE("a server whose worker is lost before it is welcomed ends, and names it") {
  RendezvousOptions options{.secret = JobSecret::random()};
  options.master = {"127.0.0.1", 0};
  const auto membership = Membership::join(options, listen_on(options.master));
  const ServerJob job = job_for(1, 1, SgdMomentum{});
  Socket listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size = sizeof address.sun_family;  // the system finds a name
  REQUIRE(::bind(listener.fd(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  size = sizeof address;
  REQUIRE(::getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  REQUIRE(::listen(listener.fd(), 1) == 0);
  auto server = std::async(std::launch::async, [&] {
    return run_parameter_server(*membership, "reckon", 0, job, std::move(listener), Seconds{5});
  });
  greet_and_go(address, size, options.secret, job);
  CHECK_THROWS_WITH(server.get(), Catch::StartsWith("rank 0 ("));
}

TEST_CASE("kill -9 of a worker or a server: all others end and name it") {
  for (const int victim : {1, 2, 3}) {
    const auto outcomes = run_ps_job(
        job_for(3, 1, SgdMomentum{}), [&](int rank, Membership& m, const ServerJob& job) {
          LinearModel model(kLayers);
          const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
          exchange->start(model.view());
          for (int step = 0;; ++step) {
            if (rank == victim && step == 5) kill(getpid(), SIGKILL);
            if (rank == 0 && victim == 3 && step == 5) kill(pid_t(m.members()[3].process), SIGKILL);
            model.announce(*exchange);
            exchange->finish_step(step, 0.001);
          }
          return std::string();
        });
    for (int rank = 0; rank < 4; ++rank) {
      INFO("rank " << rank << ": " << outcomes[std::size_t(rank)].output);
      CHECK(outcomes[std::size_t(rank)].code == (rank == victim ? 128 + SIGKILL : kExitLostPeer));
      if (rank != victim)
        CHECK_THAT(outcomes[std::size_t(rank)].output,
                   Catch::StartsWith(fmt::format("rank {} (", victim)));
    }
  }
}

TEST_CASE("a hung worker is named after the timeout, by server and workers") {
  const auto outcomes = run_ps_job(
      job_for(3, 1, SgdMomentum{}),
      [&](int rank, Membership& m, const ServerJob& job) -> std::string {
        LinearModel model(kLayers);
        const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{5});
        exchange->start(model.view());
        for (int step = 0;; ++step) {
          if (rank == 1 && step == 3) {
            // Alive and silent, until the others are gone.
            m.get("never set", Deadline::after(Seconds{10}));
          }
          model.announce(*exchange);
          exchange->finish_step(step, 0.001);
        }
      },
      Seconds{0.4});
  for (const std::size_t rank : {0u, 2u, 3u}) {
    INFO(outcomes[rank].output);
    CHECK(outcomes[rank].code == kExitLostPeer);
    CHECK_THAT(outcomes[rank].output,
               Catch::Contains("no gradients of step 3 for 0.4 s from rank 1 (worker on"));
  }
}

TEST_CASE("a worker that leaves too early is named at once, not after the timeout") {
  const Deadline limit = Deadline::after(Seconds{10});
  const auto outcomes =
      run_ps_job(job_for(2, 1, SgdMomentum{}), [&](int rank, Membership& m, const ServerJob& job) {
        return train_worker(rank, m, job, rank == 1 ? 3 : 5);
      });
  CHECK_FALSE(limit.passed());
  CHECK(outcomes[1].code == 0);
  CHECK(outcomes[0].code == kExitLostPeer);
  CHECK(outcomes[0].output == "rank 1 left before step 3");
}

TEST_CASE("a worker with another plan is refused with the reason") {
  const auto outcomes =
      run_ps_job(job_for(1, 1, SgdMomentum{}), [&](int, Membership& m, const ServerJob& job) {
        ServerJob other = job;
        other.optimizer = AdamW{};
        try {
          make_ps_exchange(m, "reckon", other, Seconds{5});
        } catch (const CommError& error) {
          const std::string first = error.what();
          make_ps_exchange(m, "reckon", job, Seconds{5});  // and the right one is welcome
          return first;
        }
        return std::string("welcome");
      });
  CHECK_THAT(outcomes[0].output,
             Catch::Contains("differ in the model, the strategy or the optimizer"));
  CHECK(outcomes[1].code == 0);
}

TEST_CASE("no message of a stranger or a broken worker crashes a server") {
  // A worker that says hello properly and then sends `bad`; the server ends with an error that
  // names it. A stranger's bytes beforehand have no effect.
  struct Bad {
    ServerMessage kind;
    std::uint64_t tag;
    std::size_t bytes;
    const char* says;
  };
  const std::uint64_t no_group = encode(PushTag{0, 999});
  const std::size_t right = job_for(1, 1, SgdMomentum{}).keys.groups[0].count * sizeof(float);
  for (const Bad& bad :
       {Bad{ServerMessage::push, no_group, 8, "group 999"},
        Bad{ServerMessage::push, encode(PushTag{0, 0}), 3, "3 bytes for a group of"},
        Bad{ServerMessage::push, encode(PushTag{0, 0}), 1 << 20, "1048576 bytes for a group of"},
        Bad{ServerMessage::initialize, 999, 4, "group 999"},
        Bad{ServerMessage::put_state, 0, 4, "4 bytes for a group of"},
        Bad{ServerMessage::get_state, 1ull << 60, 0, "group 1152921504606846976"},
        Bad{ServerMessage::pull, 1, 3, "message ends inside a field"},
        Bad{ServerMessage::values, 0, 0, "message of kind 108"},
        Bad{ServerMessage(7), 0, 0, "message of kind 7"}}) {
    const auto outcomes =
        run_ps_job(job_for(1, 1, SgdMomentum{}), [&](int, Membership& m, const ServerJob& job) {
          const HostPort server = m.members()[1].address;
          for (int stranger = 0; stranger < 3; ++stranger) {
            const Socket socket = connect_to(server, soon());
            const std::string noise(std::size_t(100 * stranger), 'x');
            send_all(socket, std::as_bytes(std::span(noise)), soon());
          }
          Channel channel = greeted_server(m, job);
          try {
            send_message(channel, std::uint16_t(bad.kind), 0, bad.tag,
                         std::vector<std::byte>(bad.bytes), soon());
            while (true) receive_message(channel, right + 1000, soon());
          } catch (const SocketError&) {
          }
          return std::string();
        });
    INFO(outcomes[1].output);
    CHECK(outcomes[1].code == kExitLostPeer);
    CHECK_THAT(outcomes[1].output, Catch::Contains(bad.says));
  }
}

TEST_CASE("gradients that are damaged on their way are an error, never an update") {
  const auto outcomes =
      run_ps_job(job_for(1, 1, SgdMomentum{}), [&](int, Membership& m, const ServerJob& job) {
        Channel channel = greeted_server(m, job);
        // A good message through a socket pair, then with a flipped bit to the server.
        std::array<int, 2> ends{};
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
        const Socket out{ends[1]};
        Socket to_server = std::exchange(channel.socket(), Socket{ends[0]});
        const std::vector<float> gradients(job.keys.groups[0].count, 1);
        send_message(channel, std::uint16_t(ServerMessage::push), 0, encode(PushTag{0, 0}),
                     std::as_bytes(std::span(gradients)), soon());
        std::vector<std::byte> raw(kMessageHeadSize + gradients.size() * sizeof(float));
        receive_all(out, raw, soon());
        raw.back() ^= std::byte{1};
        send_all(to_server, raw, soon());
        channel.socket() = std::move(to_server);
        try {
          while (true) receive_message(channel, 1000, soon());
        } catch (const SocketError&) {
        }
        return std::string();
      });
  CHECK(outcomes[1].code == kExitLostPeer);
  CHECK_THAT(outcomes[1].output, Catch::Contains("is damaged"));
}
