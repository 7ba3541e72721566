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

/// Where a job with two tiers is after so much wall time since its (re)start.
struct TierPlace {
  SimDuration work{};
  std::int64_t local = 0;   // saves to the nodes that were made
  std::int64_t stored = 0;  // saves to the storage
  bool saving = false;
};
TierPlace place_at(const CheckpointCycle& cycle, SimDuration wall) {
  const SimDuration piece = cycle.local.every + cycle.local.save;
  const std::int64_t pieces = cycle.interval / cycle.local.every;
  TierPlace at;
  at.stored = wall / cycle.length();
  const SimDuration phase = wall % cycle.length();
  const std::int64_t whole = std::min<std::int64_t>(phase / piece, pieces);
  at.local = at.stored * pieces + whole;
  at.work = at.stored * cycle.interval + whole * cycle.local.every;
  at.saving = whole == pieces;
  if (at.saving) return at;
  const SimDuration within = phase % piece;
  at.work += std::min(within, cycle.local.every);
  at.saving = within >= cycle.local.every;
  return at;
}

/// Wall time since the (re)start at which so much work is done; a save behind it is not begun.
Int128 wall_of(const CheckpointCycle& cycle, SimDuration work) {
  if (work.count() == 0) return 0;
  const std::int64_t stored = (work - SimDuration{1}) / cycle.interval;
  const SimDuration rest = work - stored * cycle.interval;
  const std::int64_t local = (rest - SimDuration{1}) / cycle.local.every;
  return Int128{stored} * cycle.length().count() + Int128{local} * cycle.local.save.count() +
         rest.count();
}

Stretch advance_tiers(Progress& progress, const CheckpointCycle& cycle, SimDuration elapsed,
                      double speed) {
  const SimDuration before = place_at(cycle, progress.phase).work;
  progress.phase += elapsed;
  const TierPlace now = place_at(cycle, progress.phase);
  Stretch stretch;
  stretch.unsafe = now.work - before;
  stretch.saving = elapsed - stretch.unsafe;
  const auto held = [&](SimDuration work) {
    return std::min(progress.begun + work_in(work, speed), progress.done);
  };
  progress.done = std::min(progress.begun + work_in(now.work, speed), progress.total);
  const auto made_by = [&](SimDuration write) {
    return progress.phase >= write ? place_at(cycle, progress.phase - write) : TierPlace{};
  };
  const SimDuration was = progress.saved;
  if (const auto stored = made_by(cycle.write).stored; stored > 0)
    progress.saved = std::max(progress.saved, held(stored * cycle.interval));
  if (const auto local = made_by(cycle.local.write).local; local > 0)
    progress.saved_local = std::max(progress.saved_local, held(local * cycle.local.every));
  if (progress.saved > was)
    stretch.stored = double((progress.saved - was).count()) / double((progress.done - was).count());
  return stretch;
}

SimDuration within_a_century(Int128 time) {
  constexpr SimDuration kCentury = std::chrono::hours(100 * 365 * 24);
  return time < kCentury.count() ? SimDuration{static_cast<std::int64_t>(time)} : kCentury;
}

}  // namespace

SimDuration time_to_finish(const Progress& progress, const CheckpointCycle& cycle, double speed) {
  RECKON_CHECK(speed > 0);
  const SimDuration work = wall_for(progress.total - progress.done, speed);
  if (!cycle.on() || work.count() == 0) return work;
  if (cycle.has_tiers()) {
    const SimDuration worked = place_at(cycle, progress.phase).work;
    return within_a_century(wall_of(cycle, worked + work) - progress.phase.count());
  }
  SimDuration before = cycle.interval - progress.phase;  // work before the next save begins
  SimDuration rest{};                                    // of the save being made
  if (progress.phase >= cycle.interval) {
    before = cycle.interval;
    rest = cycle.length() - progress.phase;
  }
  if (work <= before) return rest + work;
  const std::int64_t saves = 1 + (work - before - SimDuration{1}) / cycle.interval;
  // Saves much longer than their interval leave the clock: a century is never either.
  return within_a_century(Int128{rest.count()} + work.count() +
                          Int128{saves} * cycle.save.count());  // 64 x 64 bits
}

Stretch advance(Progress& progress, const CheckpointCycle& cycle, SimDuration elapsed,
                double speed) {
  if (cycle.has_tiers()) return advance_tiers(progress, cycle, elapsed, speed);
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

bool is_saving(const Progress& progress, const CheckpointCycle& cycle) {
  if (!cycle.on()) return false;
  return cycle.has_tiers() ? place_at(cycle, progress.phase).saving
                           : progress.phase >= cycle.interval;
}

SimDuration time_to_save(const Progress& progress, const CheckpointCycle& cycle) {
  if (cycle.has_tiers()) {
    const SimDuration phase = progress.phase % cycle.length();
    if (phase >= cycle.length() - cycle.save) return cycle.length() - phase + cycle.write;
    const bool older = progress.phase >= cycle.length() && phase < cycle.write;
    return (older ? cycle.write - phase : SimDuration{0}) + cycle.save + cycle.write;
  }
  if (is_saving(progress, cycle)) return cycle.length() - progress.phase + cycle.write;
  const SimDuration older = progress.writing ? cycle.write - progress.phase : SimDuration{0};
  return older + cycle.save + cycle.write;
}

SimDuration time_to_next_save(const Progress& progress, const CheckpointCycle& cycle) {
  const SimDuration phase = progress.phase % cycle.length();
  return std::max(SimDuration{0}, cycle.length() - cycle.save - phase);
}

void go_on(Progress& progress, const CheckpointCycle& cycle, SimDuration step) {
  const SimDuration lost = std::min(step, progress.done - progress.saved);
  progress.done -= lost;
  progress.saved_local = std::min(progress.saved_local, progress.done);
  progress.begun = progress.done;
  progress.phase =
      cycle.on() && !cycle.has_tiers() ? std::min(progress.phase, cycle.interval) : SimDuration{0};
  progress.writing = false;
}

}  // namespace reckon
