#include "sim/cluster/progress.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/overflow.h"

namespace reckon {
namespace {

// Full pace is exact in integers; only a slower (asynchronous) pace rounds, to the nearest
// nanosecond.
SimDuration work_in(SimDuration wall, double speed) {
  if (speed == 1.0) return wall;
  return SimDuration{std::llrint(double(wall.count()) * speed)};
}
SimDuration wall_for(SimDuration work, double speed) {
  if (speed == 1.0) return work;
  constexpr double kLongest = 5e18;  // ns, 158 years
  return SimDuration{
      static_cast<std::int64_t>(std::min(std::ceil(double(work.count()) / speed), kLongest))};
}

}  // namespace

SimDuration time_to_finish(const Progress& progress, const CheckpointCycle& cycle, double speed) {
  RECKON_CHECK(speed > 0);
  const SimDuration work = wall_for(progress.total - progress.done, speed);
  if (!cycle.on() || work.count() == 0) return work;
  SimDuration before = cycle.interval - progress.phase;  // work before the next save begins
  SimDuration rest{};                                    // of the save being made
  if (progress.phase >= cycle.interval) {
    before = cycle.interval;
    rest = cycle.length() - progress.phase;
  }
  if (work <= before) return rest + work;
  const std::int64_t saves = 1 + (work - before - SimDuration{1}) / cycle.interval;
  // Saves much longer than their interval leave the clock: a century is never either.
  constexpr SimDuration kCentury = std::chrono::hours(100 * 365 * 24);
  const Int128 time =
      Int128{rest.count()} + work.count() + Int128{saves} * cycle.save.count();  // 64 x 64 bits
  return time < kCentury.count() ? SimDuration{static_cast<std::int64_t>(time)} : kCentury;
}

Stretch advance(Progress& progress, const CheckpointCycle& cycle, SimDuration elapsed,
                double speed) {
  Stretch stretch;
  if (!cycle.on()) {
    stretch.unsafe = elapsed;
  } else {
    const SimDuration end = progress.phase + elapsed;
    const auto saves = end / cycle.length();
    const SimDuration phase = end % cycle.length();
    // The last of them is complete when its write is, too.
    const auto complete = phase >= cycle.write ? saves : saves - 1;
    const SimDuration before = std::min(progress.phase, cycle.interval);
    const SimDuration after = std::min(phase, cycle.interval);
    const SimDuration work = saves * cycle.interval + after - before;
    stretch.saved = complete > 0;
    stretch.written = progress.writing && complete >= 0;
    stretch.copies = saves > complete && saves > 0;
    stretch.unsafe = saves > 0 ? after : work;
    stretch.safe = stretch.saved ? complete * cycle.interval - before : SimDuration{0};
    stretch.copied = work - stretch.safe - stretch.unsafe;
    stretch.saving = elapsed - work;
    progress.phase = phase;
  }
  if (stretch.saved)
    progress.saved = progress.done + work_in(stretch.safe, speed);
  else if (stretch.written)
    progress.saved = progress.copied;
  if (stretch.copies) {
    progress.copied = progress.done + work_in(stretch.safe + stretch.copied, speed);
    progress.writing = true;
  } else if (stretch.saved || stretch.written) {
    progress.writing = false;
  }
  progress.done += work_in(stretch.safe + stretch.copied + stretch.unsafe, speed);
  progress.done = std::min(progress.done, progress.total);
  progress.copied = std::min(progress.copied, progress.done);
  progress.saved = std::min(progress.saved, progress.done);
  return stretch;
}

SimDuration time_to_save(const Progress& progress, const CheckpointCycle& cycle) {
  if (is_saving(progress, cycle)) return cycle.length() - progress.phase + cycle.write;
  const SimDuration older = progress.writing ? cycle.write - progress.phase : SimDuration{0};
  return older + cycle.save + cycle.write;
}

}  // namespace reckon
