#pragma once
#include "sim/base/quantity.h"

// Training between two events, in closed form: a checkpoint costs no event.
//
//   |-- interval of work --|- save -|-- interval of work --|- save -|-- ...
//   phase 0                interval cycle = interval + save
//
// Work is counted in nanoseconds of the job at full pace; `speed` is the pace relative to that (1:
// all workers).
namespace reckon {

struct CheckpointCycle {
  SimDuration interval{};  // of work between two saves; 0: no checkpoints are made
  SimDuration save{};
  bool on() const { return interval.count() > 0; }
  SimDuration length() const { return interval + save; }
};

struct Progress {
  SimDuration total{};  // work to do
  SimDuration done{};
  SimDuration saved{};  // what the last completed checkpoint holds
  SimDuration phase{};  // wall time since the last save ended or the run was (re)started
};

/// How a stretch of wall time was spent; the three add up to it.
struct Stretch {
  SimDuration safe{};    // work that a save completed in this stretch holds
  SimDuration unsafe{};  // work since the last completed save (or since the stretch began)
  SimDuration saving{};
  bool saved = false;  // at least one save was completed, so earlier unsafe work is safe too
};

/// Wall time until the work is done, saves included. A save that would fall on the very end is not
/// made. speed > 0.
SimDuration time_to_finish(const Progress& progress, const CheckpointCycle& cycle, double speed);

/// Moves `progress` on by `elapsed` wall time, at most time_to_finish().
Stretch advance(Progress& progress, const CheckpointCycle& cycle, SimDuration elapsed,
                double speed);

/// Wall time from now to a complete checkpoint of all work done: a save, or the rest of the one
/// being made.
SimDuration time_to_save(const Progress& progress, const CheckpointCycle& cycle);

}  // namespace reckon
