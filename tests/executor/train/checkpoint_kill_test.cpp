#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "checkpoint_support.h"
#include "sim/base/random.h"

namespace reckon {
namespace {

using namespace reckon::test;

constexpr int kRanks = 2;
constexpr Purpose kKillMoment{"test_kill_moment"};

/// Saves step after step, and tells the pipe each step that is on the device.
[[noreturn]] void save_for_ever(const std::filesystem::path& directory, std::int64_t first,
                                int tell) {
  CheckpointStore zero(toy_options(directory, 0, kRanks));
  CheckpointStore one(toy_options(directory, 1, kRanks));
  for (std::int64_t step = first;; ++step) {
    zero.save(step, {{"step", step}}, ToyState::at(step, 0).tensors());
    one.save(step, {{"step", step}}, ToyState::at(step, 1).tensors());
    one.finish();
    zero.finish();
    if (::write(tell, &step, sizeof step) != sizeof step) ::_exit(1);
  }
}

/// Where a kill comes: so long after the writer called so many saves accepted. Counted in saves
/// first, so that a machine that starts processes slowly still comes to the saves that follow.
struct KillMoment {
  int saves = 0;
  std::int64_t microseconds = 0;
};

/// The last step that the writer called accepted before it was killed; `before` where there is
/// none.
std::int64_t run_and_kill(const std::filesystem::path& directory, std::int64_t before,
                          KillMoment moment) {
  int told[2];
  REQUIRE(::pipe(told) == 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    ::close(told[0]);
    save_for_ever(directory, before + 1, told[1]);
  }
  ::close(told[1]);
  std::int64_t accepted = before, step = 0;
  const auto read_one = [&] { return ::read(told[0], &step, sizeof step) == sizeof step; };
  for (int save = 0; save < moment.saves && read_one(); ++save) accepted = step;
  const timespec wait{0, moment.microseconds * 1000};
  ::nanosleep(&wait, nullptr);
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  while (read_one()) accepted = step;
  ::close(told[0]);
  return accepted;
}

/// Of one save of all ranks, here and now: kills are placed within a few of them.
std::int64_t microseconds_of_a_save() {
  const Scratch scratch(memory_directory());
  const auto begin = std::chrono::steady_clock::now();
  for (const std::int64_t step : {1, 2, 3, 4}) save_toy(scratch.path(), step, kRanks);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return std::int64_t(took.count() / 4);
}

TEST_CASE("kill -9 at 200 random moments of saving never loses an accepted checkpoint") {
  const Scratch scratch(memory_directory());
  RandomStream random(1, 0, kKillMoment, 0);
  const double longest_wait = 3 * double(microseconds_of_a_save());
  std::int64_t accepted = 0;
  int between = 0;  // kills that hit a save, so that this test tests something
  for (int kill = 0; kill < 200; ++kill) {
    INFO("kill " << kill << ", accepted " << accepted);
    const KillMoment moment{.saves = int(random.uniform() * 3),
                            .microseconds = std::int64_t(random.uniform() * longest_wait)};
    accepted = run_and_kill(scratch.path(), accepted, moment);
    for (const CheckpointSet& set : list_sets(scratch.path())) between += set.complete ? 0 : 1;
    CheckpointStore store(toy_options(scratch.path(), 0, kRanks));
    const Recovery recovery = store.recover();
    CHECK(recovery.refused.empty());
    const std::int64_t found = recovery.step.value_or(0);
    // One more may be complete than was told: the kill came between the manifest and the telling.
    REQUIRE(found >= accepted);
    REQUIRE(found <= accepted + 1);
    for (int rank = 0; found > 0 && rank < kRanks; ++rank) {
      ToyState loaded;
      CheckpointStore(toy_options(scratch.path(), rank, kRanks)).load(found, loaded.targets());
      REQUIRE(loaded == ToyState::at(found, rank));
    }
    accepted = found;
  }
  CHECK(accepted >= 130);  // the saves that the kills waited for, at least
  CHECK(between > 20);
}

}  // namespace
}  // namespace reckon
