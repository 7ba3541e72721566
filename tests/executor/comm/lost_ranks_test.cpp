#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "executor/comm/job.h"
#include "executor/comm/thread_communicator.h"

// Ranks that are lost amid a collective: who learns of it, and when.
using namespace reckon;

TEST_CASE("kill -9 of one rank: all others end within the deadline and name it") {
  need_gloo();
  for (const int victim : {0, 2}) {
    const Deadline limit = Deadline::after(Seconds{10});
    const auto outcomes = run_gloo_job(4,
                                       [&](Communicator& c, Membership&) -> std::string {
                                         std::vector<float> values(100'000);
                                         for (int step = 0;; ++step) {
                                           if (c.rank() == victim && step == 20)
                                             kill(getpid(), SIGKILL);
                                           c.all_reduce(std::span(values));
                                         }
                                       },
                                       {.timeout = Seconds{60}});
    CHECK_FALSE(limit.passed());  // by the end of the connections, long before the timeout
    for (int rank = 0; rank < 4; ++rank) {
      INFO("rank " << rank << ": " << outcomes[std::size_t(rank)].output);
      CHECK(outcomes[std::size_t(rank)].code == (rank == victim ? 128 + SIGKILL : kExitLostPeer));
      if (rank != victim)
        CHECK_THAT(outcomes[std::size_t(rank)].output,
                   Catch::Contains(fmt::format("answer: rank {} (worker on", victim)));
    }
  }
}

TEST_CASE("kill -9 amid a large transfer: who waits for the send learns of it at once") {
  need_gloo();
  constexpr std::size_t kBytes = 8
                                 << 20;  // more than the kernel holds: a send waits for its reader
  constexpr int kVictim = 1, kMessages = 20;
  const auto outcomes = run_gloo_job(3,
                                     [&](Communicator& c, Membership&) -> std::string {
                                       std::vector<std::byte> bytes(kBytes);
                                       if (c.rank() == 2) c.receive(bytes, kVictim);
                                       for (int k = 0; c.rank() == 0; ++k) c.send(bytes, kVictim);
                                       for (int k = 0; k < kMessages; ++k) c.receive(bytes, 0);
                                       std::thread([] {
                                         usleep(2000);
                                         kill(getpid(), SIGKILL);
                                       }).detach();
                                       while (true) c.receive(bytes, 0);
                                     },
                                     {.timeout = Seconds{50}});
  for (const int rank : {0, 2}) {
    INFO("rank " << rank << ": " << outcomes[std::size_t(rank)].output);
    CHECK(outcomes[std::size_t(rank)].code == kExitLostPeer);
    CHECK_THAT(outcomes[std::size_t(rank)].output, Catch::Contains("answer: rank 1 (worker on"));
    CHECK_THAT(outcomes[std::size_t(rank)].output, !Catch::Contains("Timed out"));
  }
}

TEST_CASE("a rank that an exception ends is lost to the others, wherever they wait") {
  need_gloo();
  const auto outcomes = run_gloo_job(3,
                                     [&](Communicator& c, Membership&) -> std::string {
                                       if (c.rank() == 1) throw std::runtime_error("disk full");
                                       // Of the two others each waits for the other.
                                       std::vector<std::byte> bytes(10);
                                       c.receive(bytes, 2 - c.rank());
                                       return {};
                                     },
                                     {.timeout = Seconds{50}});
  CHECK(outcomes[1].output == "disk full");
  for (const int rank : {0, 2}) {
    INFO("rank " << rank << ": " << outcomes[std::size_t(rank)].output);
    CHECK(outcomes[std::size_t(rank)].code == kExitLostPeer);
    CHECK_THAT(outcomes[std::size_t(rank)].output, Catch::Contains("answer: rank 1 (worker on"));
    CHECK_THAT(outcomes[std::size_t(rank)].output, !Catch::Contains("Timed out"));
  }
}

TEST_CASE("a hung rank is named after the timeout") {
  need_gloo();
  for (const int victim : {0, 1}) {
    const auto outcomes = run_gloo_job(
        3,
        [&](Communicator& c, Membership&) -> std::string {
          std::vector<float> values(1000);
          for (int step = 0;; ++step) {
            if (c.rank() == victim && step == 20) kill(getpid(), SIGSTOP);
            c.all_reduce(std::span(values));
          }
        },
        {.timeout = Seconds{0.4}},
        [&](const std::vector<pid_t>& processes) {
          // The stopped process must not keep the test waiting for its end.
          siginfo_t info{};
          waitid(P_PID, id_t(processes[std::size_t(victim)]), &info, WSTOPPED | WNOWAIT);
          const Deadline others = Deadline::after(Seconds{4});
          for (std::size_t i = 0; i < processes.size(); ++i)
            if (int(i) != victim)
              while (waitid(P_PID, id_t(processes[i]), &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
                     info.si_pid == 0 && !others.passed())
                usleep(2000);
          kill(processes[std::size_t(victim)], SIGKILL);
        });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      INFO("rank " << rank << ": " << outcomes[std::size_t(rank)].output);
      CHECK(outcomes[std::size_t(rank)].code == kExitLostPeer);
      CHECK_THAT(outcomes[std::size_t(rank)].output,
                 Catch::Contains(fmt::format("answer: rank {} (worker on", victim)));
    }
  }
}

TEST_CASE("what a thread published is not read any more when it has given up") {
  auto communicators = make_thread_communicators(2, Seconds{0.05});
  std::vector<std::byte> given(8, std::byte{7}), received(8, std::byte{1});
  CHECK_THROWS_AS(communicators[0]->broadcast(given, 0), CommError);  // nobody came in time
  CHECK_THROWS_AS(communicators[1]->broadcast(received, 0), CommError);
  CHECK(received == std::vector<std::byte>(8, std::byte{1}));
}

TEST_CASE("a thread that leaves is lost to those that wait for it") {
  auto communicators = make_thread_communicators(3, Seconds{20});
  std::vector<std::string> errors(3);
  {
    std::vector<std::jthread> threads;
    for (auto& c : communicators)
      threads.emplace_back([&errors, mine = std::move(c)]() mutable {
        const int rank = mine->rank();
        mine->barrier();
        if (rank == 1) {
          mine.reset();
          return;
        }
        try {
          mine->barrier();
        } catch (const CommError& error) {
          errors[std::size_t(rank)] = error.what();
        }
      });
  }
  // The first to notice leaves too; whoever is left names one of them.
  CHECK_THAT(errors[0] + errors[2], Catch::Contains("rank 1"));
  CHECK_FALSE(errors[0].empty());
  CHECK_FALSE(errors[2].empty());
}
