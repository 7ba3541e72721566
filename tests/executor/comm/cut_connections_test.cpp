#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <future>

#include <fmt/format.h>

#include "executor/comm/channel.h"
#include "executor/comm/job.h"
#include "executor/comm/relay.h"
#include "executor/comm/rendezvous/coordinator.h"
#include "executor/comm/server_job.h"

// A rank whose connection to rank 0 is cut while its process lives.
namespace {
using namespace reckon;
using namespace reckon::test;

constexpr Seconds kVeryLong{60};  // nothing that a test waits for takes so long

/// What rank 0 warns of.
class Warnings {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    all_ += text + '\n';
    more_.notify_all();
  }
  /// Waits for it.
  bool say(const std::string& text) {
    std::unique_lock lock(mutex_);
    return more_.wait_for(lock, std::chrono::seconds(20),
                          [&] { return all_.find(text) != std::string::npos; });
  }
  std::string all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::string all_;
};

/// Three ranks of this process; rank 1 reaches rank 0 by a relay.
struct CutJob {
  explicit CutJob(Seconds grace = RendezvousOptions{.secret = JobSecret::random()}.grace,
                  Role last = Role::worker)
      : local(3), relay(listen_on({"127.0.0.1", 0}), local.options.master) {
    local.options.grace = grace;
    std::array<std::future<std::unique_ptr<Membership>>, 3> joining;
    for (int rank = 0; rank < 3; ++rank) {
      RendezvousOptions options = local.options;
      options.rank = rank;
      if (rank == 2) options.role = last;
      if (rank == 2) options.port = of_last.local().port;
      if (rank == 0) options.warn = [this](const std::string& text) { warnings.add(text); };
      if (rank == 1) options.master = relay.address();
      joining[std::size_t(rank)] = std::async(std::launch::async, [this, options] {
        if (options.rank > 0) return Membership::join(options);
        return Membership::join(options, std::move(local.listener));
      });
    }
    for (auto& one : joining) ranks.push_back(one.get());
    for (std::size_t rank = 0; rank < 3; ++rank)
      ranks[rank]->on_loss([this, rank] { told[rank].set_value(); });
  }
  ~CutJob() {
    while (!ranks.empty()) ranks.pop_back();  // rank 0 last
  }
  bool is_told(int rank, Seconds within) {
    return losses[std::size_t(rank)].wait_for(within) == std::future_status::ready;
  }
  bool knows_loss() {
    return ranks[0]->knows_loss() || ranks[1]->knows_loss() || ranks[2]->knows_loss();
  }
  std::string tell(int from, int to, const std::string& key) {
    ranks[std::size_t(from)]->set(key, std::as_bytes(std::span(key)));
    const auto got = ranks[std::size_t(to)]->get(key, within_seconds());
    return {reinterpret_cast<const char*>(got.data()), got.size()};
  }

  Warnings warnings;
  LocalJob local;
  Socket of_last = listen_on({"127.0.0.1", 0});
  Relay relay;
  std::array<std::promise<void>, 3> told;
  std::array<std::future<void>, 3> losses{told[0].get_future(), told[1].get_future(),
                                          told[2].get_future()};
  std::vector<std::unique_ptr<Membership>> ranks;
};

/// What rank 0 answers to the first message of a process that knows the secret.
Message answer_to(const CutJob& job, RendezvousMessage kind, std::span<const std::byte> bytes) {
  Channel channel = connect_to_process(job.local.options.master, job.local.options.secret,
                                       kCoordinatorPort, {"reckon", 1}, within_seconds());
  send_message(channel, std::uint16_t(kind), 1, 0, bytes, within_seconds());
  return receive_message(channel, kRendezvousMessageLimit, within_seconds());
}
std::string text_in(const Message& message) {
  return {reinterpret_cast<const char*>(message.payload.data()), message.payload.size()};
}
}  // namespace

TEST_CASE("a rank whose connection is cut keeps its place, and nobody is told of a loss") {
  CutJob job;
  for (int cut = 0; cut < 3; ++cut) {
    job.relay.cut();
    // Asked on whichever connection there is now.
    CHECK(job.tell(1, 2, fmt::format("of 1 {}", cut)) == fmt::format("of 1 {}", cut));
    CHECK(job.tell(2, 1, fmt::format("of 2 {}", cut)) == fmt::format("of 2 {}", cut));
  }
  CHECK(job.warnings.say("rank 1 (process "));
  CHECK(job.warnings.say("Connection reset by peer; it may come back within 10 s"));
  CHECK(job.warnings.say(" is back"));
  CHECK_FALSE(job.knows_loss());
  // It leaves as others do.
  job.ranks[1].reset();
  CHECK_FALSE(job.is_told(2, Seconds{0.3}));
}

TEST_CASE("a rank that waits for nothing comes back, too, and its loss is noticed behind that") {
  CutJob job(kVeryLong);
  job.relay.cut();
  REQUIRE(job.warnings.say(" is back"));
  CHECK(job.tell(2, 1, "read by now") == "read by now");
  job.relay.close();
  CHECK(job.is_told(0, Seconds{20}));
  CHECK(job.ranks[2]->blame(Seconds{20}) == std::vector{1});
}

TEST_CASE("a rank that was let in again and does not hear of it keeps its place") {
  CutJob job;
  job.relay.lose_answers_to(std::uint16_t(RendezvousMessage::back));
  job.relay.cut();
  REQUIRE(job.warnings.say(" is back"));
  // Its first try has ended by then, and the second is heard.
  CHECK(job.tell(1, 2, "still here") == "still here");
  CHECK_FALSE(job.knows_loss());
}

TEST_CASE("what a rank waits for when it is cut off, it is given when it is back") {
  CutJob job;
  auto late = std::async(std::launch::async, [&] {
    return job.ranks[1]->get("late", Deadline::after(Seconds{20})).size();
  });
  usleep(100'000);  // it waits by now, mostly; the result is the same
  job.relay.cut();
  REQUIRE(job.warnings.say(" is back"));
  job.ranks[2]->set("late", std::vector<std::byte>(7));
  CHECK(late.get() == 7);
  CHECK_FALSE(job.knows_loss());
}

TEST_CASE("a rank that does not come back within the grace is lost, and rank 0 says why") {
  CutJob job(Seconds{0.5});
  job.relay.pass_on(false);
  const auto begin = Deadline::Clock::now();
  job.relay.cut();
  for (const int rank : {0, 2}) {
    REQUIRE(job.is_told(rank, Seconds{20}));
    CHECK(job.ranks[std::size_t(rank)]->blame(Seconds{20}) == std::vector{1});
  }
  CHECK(Deadline::Clock::now() - begin >= 490ms);
  CHECK(job.warnings.say("it may come back within 0.5 s"));
  CHECK(job.warnings.say("did not come back"));
  // By itself it sees that rank 0 does not answer.
  REQUIRE(job.is_told(1, Seconds{20}));
  CHECK(job.ranks[1]->blame(Seconds{20}) == std::vector{0});
}

TEST_CASE("the orderly end of a connection is that of a process: its rank is lost at once") {
  CutJob job(kVeryLong);
  job.relay.close();
  CHECK(job.is_told(0, Seconds{20}));
  CHECK(job.is_told(2, Seconds{20}));
  CHECK(job.ranks[2]->blame(Seconds{20}) == std::vector{1});
  CHECK(job.warnings.all() == "");
}

TEST_CASE("a rank that is missed by others has little time to come back") {
  CutJob job(kVeryLong);
  job.relay.pass_on(false);
  const bool asks_before = GENERATE(false, true);
  auto asked = std::async(asks_before ? std::launch::async : std::launch::deferred,
                          [&] { return job.ranks[2]->blame(Seconds{40}); });
  if (asks_before) usleep(200'000);
  job.relay.cut();
  REQUIRE(job.warnings.say("it may come back"));
  const auto begin = Deadline::Clock::now();
  CHECK(asked.get() == std::vector{1});
  CHECK(Deadline::Clock::now() - begin < 15s);
}

TEST_CASE("a cut off rank that asks whose fault it is does not look for rank 0 for long") {
  CutJob job(kVeryLong);
  job.relay.pass_on(false);
  job.relay.cut();
  const auto begin = Deadline::Clock::now();
  CHECK(job.ranks[1]->blame(Seconds{40}) == std::vector{0});
  CHECK(Deadline::Clock::now() - begin < 15s);
}

TEST_CASE("of a job with parameter servers the warning of a cut promises no return") {
  CutJob job(kVeryLong, Role::parameter_server);
  job.relay.cut();
  CHECK(job.warnings.say("lost unless it is back at rank 0 within 60 s"));
  CHECK_THAT(job.warnings.all(), !Catch::Contains("may come back"));
}

TEST_CASE("who waits for a parameter server, and the server, learn that another rank is lost") {
  CutJob job(Seconds{0.5}, Role::parameter_server);
  const ServerJob servers = job_for(2, 1, SgdMomentum{});
  auto server = std::async(std::launch::async, [&] {
    return run_parameter_server(*job.ranks[2], "reckon", 0, servers, std::move(job.of_last),
                                kVeryLong);
  });
  LinearModel lost(kLayers), left(kLayers);
  const auto of_lost = make_ps_exchange(*job.ranks[1], "reckon", servers, kVeryLong);
  const auto of_left = make_ps_exchange(*job.ranks[0], "reckon", servers, kVeryLong);
  auto starting = std::async(std::launch::async, [&] { of_lost->start(lost.view()); });
  of_left->start(left.view());
  starting.get();
  // Its connection to the server stays, and nothing comes on it.
  job.relay.pass_on(false);
  job.relay.cut();
  left.announce(*of_left);
  const auto begin = Deadline::Clock::now();
  CHECK_THROWS_WITH(of_left->finish_step(0, 0.001), Catch::StartsWith("rank 1 ("));
  CHECK_THROWS_WITH(server.get(), Catch::StartsWith("rank 1 ("));
  CHECK(Deadline::Clock::now() - begin < 20s);
  // So it does itself, of rank 0, which does not answer it.
  lost.announce(*of_lost);
  CHECK_THROWS_AS(of_lost->finish_step(0, 0.001), CommError);
}

TEST_CASE("nobody else takes the place of a rank that is cut off") {
  CutJob job(kVeryLong);
  job.relay.pass_on(false);
  job.relay.cut();
  REQUIRE(job.warnings.say("it may come back within 60 s"));
  // Without the secret.
  CHECK_THROWS_AS(connect_to_process(job.local.options.master, JobSecret::random(),
                                     kCoordinatorPort, {"reckon", 1}, within_seconds()),
                  HandshakeError);
  // With it, but not with the token: another number of bytes, other bytes, none.
  for (const std::size_t bytes : {32, 31, 0}) {
    const Message no = answer_to(job, RendezvousMessage::back,
                                 encode(Return{.attempt = 0, .token = std::string(bytes, 'x')}));
    CHECK(RendezvousMessage(no.head.kind) == RendezvousMessage::refused);
    CHECK(text_in(no) == "rank 1 of this start of the job is another process");
  }
  // As one that has just been started.
  Hello hello{.attempt = 0, .size = 3};
  hello.member.rank = 1;
  hello.member.host = "elsewhere";
  const Message wait = answer_to(job, RendezvousMessage::hello, encode(hello));
  CHECK(RendezvousMessage(wait.head.kind) == RendezvousMessage::not_yet);
  CHECK_THAT(text_in(wait), Catch::StartsWith("this start of the job has begun with another"));
  // Its own process does.
  CHECK_THAT(job.warnings.all(), !Catch::Contains(" is back"));
  job.relay.pass_on(true);
  REQUIRE(job.warnings.say(" is back"));
  CHECK(job.tell(1, 2, "here") == "here");
  CHECK_FALSE(job.knows_loss());
}

TEST_CASE("ranks go on with their sums while one of them is cut off from rank 0") {
  need_gloo();
  constexpr int kSums = 400;
  LocalJob local(3);
  Socket door = listen_on({"127.0.0.1", 0});
  const auto outcomes = run_processes(
      3,
      [&](int rank) {
        std::string warned;
        local.options.warn = [&](const std::string& text) { warned += text + '\n'; };
        if (rank == 1) local.options.master = door.local();
        const auto membership = local.join(rank);
        door.close();
        const auto communicator = make_gloo_communicator(*membership);
        std::array<double, 1> sum{1};
        for (int k = 0; k < kSums; ++k, usleep(2500)) {
          sum = {1};
          communicator->all_reduce(std::span<double>(sum));
        }
        return fmt::format("{} {}", sum[0], warned);
      },
      Seconds{60},
      [&](const std::vector<pid_t>& processes) {
        local.listener.close();
        Relay relay(std::move(door), local.options.master);
        for (int k = 0; k < 3; ++k) {
          usleep(250'000);
          relay.cut();
        }
        siginfo_t info{};
        for (const pid_t process : processes)
          waitid(P_PID, id_t(process), &info, WEXITED | WNOWAIT);
      });
  for (const ProcessOutcome& outcome : outcomes)
    CHECK_THAT(outcome.output, Catch::StartsWith("3 "));
  CHECK_THAT(outcomes[0].output, Catch::Contains("rank 1 (") && Catch::Contains(" is back"));
}

TEST_CASE("a reset connection is cut, one that is closed is not") {
  const bool reset = GENERATE(false, true);
  const Socket listener = listen_on({"127.0.0.1", 0});
  Socket one = connect_to(listener.local(), within_seconds());
  const auto other = accept_one(listener, within_seconds());
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  if (reset) setsockopt(one.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  one.close();
  std::array<std::byte, 1> piece{};
  try {
    receive_all(*other, piece, within_seconds());
    FAIL("it is open");
  } catch (const SocketError& error) {
    CHECK(error.kind == SocketError::Kind::closed);
    CHECK(error.cut == reset);
  }
}

TEST_CASE("a connection whose other side takes nothing is cut when the limit has passed") {
  const Socket listener = listen_on({"127.0.0.1", 0});
  Socket one = connect_to(listener.local(), within_seconds());
  const auto other = accept_one(listener, within_seconds());
  one.expect_acknowledgement_within(Seconds{0.3});
  try {
    // More than both systems hold for a process that does not read.
    send_all(one, std::vector<std::byte>(64 << 20), Deadline::after(Seconds{30}));
    FAIL("all of it was taken");
  } catch (const SocketError& error) {
    CHECK(error.cut);
    CHECK_THAT(error.what(), Catch::Contains("timed out"));
  }
}
