#pragma once
#include <algorithm>

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
// Two tiers: `local.every` of work, a save to the nodes, and so on; after every few of those one to
// the storage. All of it is a function of the wall time since the run was (re)started:
//
//   |-- every -|l|-- every -|l|-- every -|l|- save -|-- every -|l|-- ...
//
// Work is counted in nanoseconds of the job at full pace; `speed` is the pace relative to that (1:
// all workers).
namespace reckon {

struct LocalCycle {
  SimDuration every{};  // of work between two saves to the nodes; 0: there is one tier
  SimDuration save{};   // training stands still
  SimDuration write{};  // behind it, beside training; at most `every`
};

struct CheckpointCycle {
  SimDuration interval{};  // of work between two saves; 0: no checkpoints are made
  SimDuration save{};      // training stands still
  SimDuration write{};     // behind it, beside training; at most interval. 0: a blocking save
  LocalCycle local{};      // two tiers: interval is a multiple of local.every
  bool on() const { return interval.count() > 0; }
  bool has_tiers() const { return local.every.count() > 0; }
  SimDuration length() const {
    const SimDuration between = interval + save;
    return has_tiers() ? between + interval / local.every * local.save : between;
  }
};

struct Progress {
  SimDuration total{};  // work to do
  SimDuration done{};
  SimDuration saved{};   // what the last completed checkpoint holds
  SimDuration phase{};   // wall time since the last save ended or the run was (re)started
  SimDuration copied{};  // asynchronous: what the copy holds that is being written
  bool writing = false;  // it is, until phase reaches cycle.write
  // Two tiers; phase is then all wall time since the (re)start.
  SimDuration begun{};        // done at the (re)start
  SimDuration saved_local{};  // what the last complete checkpoint on the nodes holds
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
  /// Two tiers: of all unsafe work, that of this stretch included, what the storage holds now,
  /// 0..1.
  double stored = 0;
};

/// Wall time until the work is done, saves included. A save that would fall on the very end is not
/// made. speed > 0.
/// `speed`: work done in a unit of wall time, no unit.
SimDuration time_to_finish(const Progress& progress, const CheckpointCycle& cycle, double speed);

/// Moves `progress` on by `elapsed` wall time, at most time_to_finish().
Stretch advance(Progress& progress, const CheckpointCycle& cycle, SimDuration elapsed,
                double speed);

/// Wall time from now to a complete checkpoint of all work done: a save, or the rest of the one
/// being made. An asynchronous one is waited for, and so is the write of an older copy before it.
SimDuration time_to_save(const Progress& progress, const CheckpointCycle& cycle);
/// The job stands still for a save.
bool is_saving(const Progress& progress, const CheckpointCycle& cycle);
/// Wall time until the next save to the storage begins; 0 while one is under way.
SimDuration time_to_next_save(const Progress& progress, const CheckpointCycle& cycle);

/// Goes back to the last complete checkpoint in the storage.
inline void go_back(Progress& progress) {
  progress.done = progress.saved = std::min(progress.saved, progress.done);
  progress.phase = SimDuration{0};
  progress.writing = false;
  progress.begun = progress.saved_local = progress.done;
}
/// Goes back to the last complete checkpoint on the nodes.
inline void go_back_to_local(Progress& progress) {
  progress.done = progress.saved_local = std::max(progress.saved_local, progress.saved);
  progress.phase = SimDuration{0};
  progress.begun = progress.done;
}
/// Processes go on from what they hold, less the step under way of so much work. A save under way
/// is begun again, a copy that was being written is not completed.
void go_on(Progress& progress, const CheckpointCycle& cycle, SimDuration step);

}  // namespace reckon
