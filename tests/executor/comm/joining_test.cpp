#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "executor/comm/job.h"

// Members that come to the rendezvous, as threads of this process.
namespace {
using namespace reckon;

struct Meeting {
  explicit Meeting(int size, Seconds deadline) : listener(listen_on({"127.0.0.1", 0})) {
    options.master = listener.local();
    options.size = size;
    options.deadline = deadline;
  }
  std::future<std::unique_ptr<Membership>> coming(int rank) const {
    RendezvousOptions of_rank = options;
    of_rank.rank = rank;
    return std::async(std::launch::async, [of_rank] { return Membership::join(of_rank); });
  }
  Socket listener;
  RendezvousOptions options{.secret = JobSecret::random()};
};

std::string complaint(std::future<std::unique_ptr<Membership>> joining) {
  try {
    joining.get();
  } catch (const CommError& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE(
    "two members with one rank, and the same process id and machine's name, as in containers") {
  Meeting meeting(3, Seconds{1});
  std::future<std::unique_ptr<Membership>> one = meeting.coming(1), other = meeting.coming(1);
  CHECK_THROWS_AS(Membership::join(meeting.options, std::move(meeting.listener)), CommError);
  const std::string both = complaint(std::move(one)) + complaint(std::move(other));
  CHECK_THAT(both, Catch::Contains("rank 1 is there already: process "));
  CHECK_THAT(both, Catch::Contains("1 of 3 ranks are missing after 1 s: rank 2"));
}

TEST_CASE("a rank 0 that comes up behind a proxy, which closes all connections until then") {
  Meeting meeting(2, Seconds{60});
  std::atomic<bool> up = false;
  std::thread proxy([&] {
    while (!up) accept_one(meeting.listener, Deadline::after(Seconds{0.05}));
  });
  auto joining = meeting.coming(1);
  constexpr auto kLongerThanItsFirstTries = std::chrono::seconds(4);
  CHECK(joining.wait_for(kLongerThanItsFirstTries) == std::future_status::timeout);
  up = true;
  proxy.join();
  const auto first = Membership::join(meeting.options, std::move(meeting.listener));
  CHECK(joining.get()->members().size() == 2);
}
