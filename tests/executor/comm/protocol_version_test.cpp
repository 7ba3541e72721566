#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include <fmt/format.h>

#include "executor/comm/job.h"
#include "executor/comm/strangers.h"

// Processes of one job from different versions of reckon.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("a process of version 1 is told that the versions differ") {
  LocalJob job(2);
  job.options.deadline = Seconds{3};
  const HostPort master = job.options.master;
  const auto outcomes = run_processes(2, [&](int process) -> std::string {
    std::string warned;
    if (process == 0) {
      job.options.warn = [&](const std::string& text) { warned += text; };
      try {
        job.join(0);
      } catch (const CommError&) {
      }
      return warned;
    }
    job.listener.close();
    const Socket socket = connect_to(master, within_seconds());
    std::array<std::byte, 120> hello{};  // of version 1: a header of 48 bytes and a payload
    const std::array<std::uint16_t, 4> head{0x4352, 0x4e4b, 1, 1};
    std::ranges::copy(std::as_bytes(std::span(head)), hello.begin());
    send_all(socket, hello, within_seconds());
    std::array<std::byte, 48> answer{};
    receive_all(socket, answer, within_seconds());
    return std::equal(answer.begin(), answer.begin() + 4, hello.begin()) &&
                   answer[4] == std::byte(kProtocolVersion) && answer[5] == std::byte{0}
               ? "told"
               : "not told";
  });
  CHECK(outcomes[1].output == "told");
  CHECK_THAT(outcomes[0].output,
             Catch::Contains(fmt::format("speaks version 1 of the protocol, this program {}: start "
                                         "all processes of a job from the same",
                                         kProtocolVersion)));
}

TEST_CASE("rank 0 of version 1, which closes, is told apart from one that is not there") {
  Socket old = listen_on({"127.0.0.1", 0});
  const HostPort master = old.local();
  std::atomic<bool> over = false;
  std::thread rank0([&] {
    while (!over)
      if (auto one = accept_one(old, Deadline::after(Seconds{0.1}))) {
        std::array<std::byte, 48> head{};
        receive_all(*one, head, within_seconds());
      }
  });
  RendezvousOptions options{.secret = JobSecret::random(),
                            .rank = 1,
                            .size = 2,
                            .master = master,
                            .deadline = Seconds{8}};
  std::string message;
  try {
    Membership::join(options);
  } catch (const CommError& error) {
    message = error.what();
  }
  over = true;
  rank0.join();
  CHECK_THAT(message, Catch::Contains("closes the connection before it proves that it knows the "
                                      "job's secret: another program, or another version"));
}
