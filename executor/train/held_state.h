#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/train/checkpoint/tensor_slice.h"
#include "executor/train/trainer.h"

// The state of a data-parallel job in the memory of a rank that outlives a start of it: every such
// rank has all of it, so whoever is new gets it from one that was there, and only the step under
// way is lost (kept_after(), sim/cluster/restart.h).
namespace reckon {

class HeldState {
 public:
  /// A copy of what the rank's trainer holds, also behind a step that failed. Its state is not cut
  /// over ranks. Throws TrainingError.
  explicit HeldState(Trainer& trainer);
  /// Optimizer steps that are in it.
  std::int64_t steps_done() const { return steps_done_; }

 private:
  friend std::optional<std::int64_t> share_held_state(Communicator&, Trainer&, const HeldState*);
  struct Tensor {
    TensorSlice slice;
    std::vector<std::byte> bytes;
  };
  static const Tensor& of(const std::vector<Tensor>& tensors, const TensorSlice& slice);

  std::int64_t steps_done_ = 0;
  std::vector<Tensor> tensors_;
  /// A rank's own: as they are, and as they were before the step that failed (the same where none
  /// did).
  std::vector<Tensor> statistics_, statistics_before_;
};

/// Collective, before Trainer::start(): the newest state that a rank holds is restored on all.
/// `mine`: nullptr on those that hold none. Running statistics stay each rank's own where it has
/// some of that step. The number of steps done; nullopt: nobody holds any, nothing is restored.
/// Throws CommError.
std::optional<std::int64_t> share_held_state(Communicator& peers, Trainer& trainer,
                                             const HeldState* mine);

}  // namespace reckon
