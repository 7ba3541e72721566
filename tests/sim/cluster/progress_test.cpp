#include "sim/cluster/progress.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

using namespace reckon;
using namespace std::chrono_literals;

namespace {

/// The same, a nanosecond at a time.
struct Slow {
  Progress progress;
  Stretch stretch;
  void tick(const CheckpointCycle& cycle) {
    if (progress.phase < cycle.interval) {
      ++progress.done;
      ++stretch.unsafe;
    } else {
      ++stretch.saving;
    }
    if (++progress.phase == cycle.length()) {
      progress.phase = {};
      progress.copied = progress.done;
      progress.writing = true;
      stretch.copied += stretch.unsafe;
      stretch.unsafe = {};
    }
    if (!progress.writing || progress.phase < cycle.write) return;
    progress.writing = false;
    progress.saved = progress.copied;
    stretch.safe += stretch.copied;
    stretch.copied = {};
  }
};

}  // namespace

TEST_CASE("closed-form progress is what counting nanoseconds gives") {
  CHECK(rc::check([] {
    const auto ns = [](int low, int high) { return SimDuration{*rc::gen::inRange(low, high)}; };
    CheckpointCycle cycle{ns(1, 20), ns(0, 10)};
    if (*rc::gen::inRange(0, 2) == 0) cycle.write = ns(0, int(cycle.interval.count()));
    Progress progress{.total = ns(0, 200)};
    const SimDuration finish = time_to_finish(progress, cycle, 1);
    Slow slow{progress, {}};
    while (slow.progress.done < progress.total) slow.tick(cycle);
    SimDuration counted =
        slow.stretch.safe + slow.stretch.copied + slow.stretch.unsafe + slow.stretch.saving;
    RC_ASSERT(finish == counted || cycle.save.count() == 0);
    RC_ASSERT(finish >= progress.total);

    // In three stretches to some moment before the end.
    slow = Slow{progress, {}};
    SimDuration left = finish;
    for (int k = 0; k < 3; ++k) {
      const SimDuration elapsed = ns(0, int(left.count()) + 1);
      left -= elapsed;
      const Stretch stretch = advance(progress, cycle, elapsed, 1);
      slow.stretch = {};
      for (SimDuration t{}; t < elapsed; ++t) slow.tick(cycle);
      RC_ASSERT(stretch.safe == slow.stretch.safe);
      RC_ASSERT(stretch.copied == slow.stretch.copied);
      RC_ASSERT(stretch.unsafe == slow.stretch.unsafe);
      RC_ASSERT(progress.writing == slow.progress.writing);
      RC_ASSERT(stretch.saving == slow.stretch.saving);
      RC_ASSERT(progress.done == slow.progress.done);
      RC_ASSERT(progress.saved == slow.progress.saved);
      RC_ASSERT(time_to_finish(progress, cycle, 1) == left);
    }
  }));
}

TEST_CASE("at half pace the same work takes twice the time, saves as long as ever") {
  const CheckpointCycle cycle{100s, 10s};
  Progress progress{.total = 400s};
  CHECK(time_to_finish(progress, cycle, 1) == 430s);
  CHECK(time_to_finish(progress, cycle, 0.5) == 870s);
  const Stretch stretch = advance(progress, cycle, 275s, 0.5);  // saves end at 110 and 220
  CHECK(stretch.safe == 200s);
  CHECK(stretch.unsafe == 55s);
  CHECK(stretch.saving == 20s);
  CHECK(progress.saved == 100s);
  CHECK(progress.done == SimDuration{127'500ms});
}

TEST_CASE("a checkpoint of all work takes a save, or the rest of the one being made") {
  const CheckpointCycle cycle{100s, 10s};
  CHECK(time_to_save({.phase = 99s}, cycle) == 10s);
  CHECK(time_to_save({.phase = 100s}, cycle) == 10s);
  CHECK(time_to_save({.phase = 107s}, cycle) == 3s);
}
