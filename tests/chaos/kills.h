#pragma once
#include <cstdint>

#include "chaos/fault_loop.h"
#include "chaos/training_job.h"

// SIGKILL at random on a training: of one rank, with its node where others have copies, of several,
// of `reckon run` (its workers end with it), and of all at once.
namespace reckon::test {

/// All that is drawn rests on the first three.
struct KillOptions {
  std::uint64_t seed = 0;
  std::uint32_t kind = 0, round = 0;  // as FaultLoopOptions
  int kills = 8;                      // at most: the job may end before
  Seconds patience{180};              // with the job, for its next save and its end
};

struct KillTally {
  FaultTally struck;  // by whom it struck
  int kills = 0;
  int in_save = 0;  // of those fell between the begin of a save and its announcement
};

/// Throws Lost, with the kills that came before it.
KillTally run_under_kills(TrainingJob& job, FaultCount& count, const KillOptions& options);

}  // namespace reckon::test
