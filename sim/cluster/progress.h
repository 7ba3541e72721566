#pragma once
#include "sim/base/quantity.h"

// Training between two events, in closed form: a checkpoint costs no event.
//
//   |-- interval of work --|- save -|-- interval of work --|- save -|-- ...
//   phase 0                interval cycle = interval + save
//
// An asynchronous save only copies in that time; it counts when its write behind it is done:
//
//   |-- interval of work --|- copy -|-- interval of work --|- copy -|-- ...
//                                   |-- write --| now it holds what the copy took
//
// Work is counted in nanoseconds of the job at full pace; `speed` is the pace relative to that (1:
// all workers).
namespace reckon {

struct CheckpointCycle {
  SimDuration interval{};  // of work between two saves; 0: no checkpoints are made
  SimDuration save{};      // training stands still
  SimDuration write{};     // behind it, beside training; at most interval. 0: a blocking save
  bool on() const { return interval.count() > 0; }
  SimDuration length() const { return interval + save; }
};

struct Progress {
  SimDuration total{};  // work to do
  SimDuration done{};
  SimDuration saved{};   // what the last completed checkpoint holds
  SimDuration phase{};   // wall time since the last save ended or the run was (re)started
  SimDuration copied{};  // asynchronous: what the copy holds that is being written
  bool writing = false;  // it is, until phase reaches cycle.write
};

/// How a stretch of wall time was spent; the four add up to it.
struct Stretch {
  SimDuration safe{};  // work that a save completed in this stretch holds
  SimDuration
      copied{};  // asynchronous: work that a copy made in this stretch holds, not written yet
  SimDuration unsafe{};  // work since the last save (or since the stretch began)
  SimDuration saving{};
  bool written = false;  // a copy made before the stretch was written in it
  bool saved = false;    // a save was begun and completed, so earlier unsafe work is safe too
  bool copies = false;   // a copy was made and is not written yet: it holds earlier unsafe work too
};

/// Wall time until the work is done, saves included. A save that would fall on the very end is not
/// made. speed > 0.
SimDuration time_to_finish(const Progress& progress, const CheckpointCycle& cycle, double speed);

/// Moves `progress` on by `elapsed` wall time, at most time_to_finish().
Stretch advance(Progress& progress, const CheckpointCycle& cycle, SimDuration elapsed,
                double speed);

/// Wall time from now to a complete checkpoint of all work done: a save, or the rest of the one
/// being made. An asynchronous one is waited for, and so is the write of an older copy before it.
SimDuration time_to_save(const Progress& progress, const CheckpointCycle& cycle);
/// The job stands still for a save.
inline bool is_saving(const Progress& progress, const CheckpointCycle& cycle) {
  return cycle.on() && progress.phase >= cycle.interval;
}
/// Goes back to the last complete checkpoint.
inline void go_back(Progress& progress) {
  progress.done = progress.saved;
  progress.phase = SimDuration{0};
  progress.writing = false;
}

}  // namespace reckon
