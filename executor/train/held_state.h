#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/train/checkpoint/tensor_slice.h"
#include "executor/train/trainer.h"

// The state of a job in the memory of a rank that outlives a start of it, where each copy of the
// model holds all of it: whoever is new gets its part from a rank of another copy, and only the
// step under way is lost (kept_after(), sim/cluster/restart.h).
namespace reckon {

class HeldState {
 public:
  /// A copy of what the rank's trainer holds, also behind a step that failed: then before its
  /// update and, where others may have made it, behind it. Throws TrainingError.
  explicit HeldState(Trainer& trainer);
  /// Most optimizer steps that are in it.
  std::int64_t steps_done() const { return versions_.back().steps; }

 private:
  friend std::optional<std::int64_t> share_held_state(Communicator&, Trainer&, const HeldState*);
  struct Tensor {
    TensorSlice slice;
    std::vector<std::byte> bytes;
  };
  using Tensors = std::vector<Tensor>;
  struct Version {
    std::int64_t steps = 0;
    Tensors tensors;
  };
  static Tensors copies_of(const std::vector<StateTensor>& tensors);
  static const Tensor& of(const Tensors& tensors, const TensorSlice& slice);
  const Version* with(std::int64_t steps) const;

  std::int64_t part_ = 0;             // of the model
  std::int64_t optimizer_began_ = 0;  // Trainer::optimizer_began()
  std::vector<Version> versions_;
  /// A rank's own: as they are, and as they were before the step that failed (the same where none
  /// did).
  Tensors statistics_, statistics_before_;
};

/// Collective, before Trainer::start(): the newest state of which ranks hold all that is needed is
/// restored on all, each rank's part from one that held the same. `mine`: nullptr on those that
/// hold none. Running statistics stay each rank's own where it has some of that step. The number of
/// steps done; nullopt: no state is whole, nothing is restored. Throws CommError.
std::optional<std::int64_t> share_held_state(Communicator& peers, Trainer& trainer,
                                             const HeldState* mine);

}  // namespace reckon
