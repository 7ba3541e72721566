#include "executor/train/checkpoint/recovery.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>

#include "executor/comm/errors.h"
#include "executor/comm/thread_communicator.h"

namespace reckon {
namespace {

using namespace std::chrono_literals;
using Found = std::optional<std::int64_t>;
using Recover = std::function<Found(const std::function<void()>&)>;

struct Learnt {
  std::optional<Found> step;  // none: CommError
  int alive = 0;
};

/// What rank 1 of two learns; ranks wait 200 ms for each other.
Learnt recovery_learn(const Recover& recover, std::string* failure = nullptr) {
  auto ranks = make_thread_communicators(2, 200ms);
  Learnt learnt;
  std::jthread other([&] {
    try {
      learnt.step = recovered_step(
          *ranks[1], [](const auto&) -> Found { throw std::logic_error("rank 0 only"); },
          [&] { ++learnt.alive; }, 20ms);
    } catch (const CommError&) {
    }
  });
  try {
    recovered_step(*ranks[0], recover, {}, 20ms);
  } catch (const std::runtime_error& e) {
    if (failure) *failure = e.what();
    ranks[0].reset();
  }
  other.join();
  return learnt;
}

TEST_CASE("ranks wait for a recovery that takes longer than they wait for each other") {
  const Learnt learnt = recovery_learn([](const auto& got_on) -> Found {
    for (int k = 0; k < 12; ++k) {  // 600 ms
      std::this_thread::sleep_for(50ms);
      got_on();
    }
    return 40;
  });
  REQUIRE(learnt.step);
  CHECK(*learnt.step == 40);
  CHECK(learnt.alive >= 1);
}

TEST_CASE("a recovery that gets on with nothing is not called alive") {
  const Learnt learnt = recovery_learn([](const auto&) -> Found {
    std::this_thread::sleep_for(300ms);
    return std::nullopt;
  });
  REQUIRE(learnt.step);
  CHECK(!*learnt.step);
  CHECK(learnt.alive == 0);
}

TEST_CASE("a recovery that fails ends rank 0 with its reason and the others with its loss") {
  std::string failure;
  const Learnt learnt = recovery_learn(
      [](const auto&) -> Found { throw std::runtime_error("no such disk"); }, &failure);
  CHECK(failure == "no such disk");
  CHECK(!learnt.step);
}

}  // namespace
}  // namespace reckon
