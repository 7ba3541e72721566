#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/gradient_exchange.h"
#include "executor/comm/zero_shards.h"
#include "kernels/optimizer/optimizer.h"
#include "sim/base/quantity.h"

namespace reckon {

struct ZeroOptions {
  OptimizerRule optimizer;
  std::vector<TrainedRange> trained;  // of the flat buffer
  std::vector<ZeroBlock> blocks;      // ascending; every trained element is in one
  int stage = 1;
  double clip_norm = 0;  // L2 norm of the global gradient at most; 0: no clipping
  bool overlap = true;   // reductions with the backward pass; else all of them after it
  /// Sum of squares of the gradients of this rank's part of the network -> of all of it; empty: it
  /// is all.
  std::function<double(double)> squares_of_all = {};
  /// Whose squares are these ranks', where others have the same gradients; nothing: all `trained`.
  std::optional<std::vector<TrainedRange>> counted = std::nullopt;
  /// Ranks over which blocks of experts are cut; nullptr: there are none.
  Communicator* expert_replicas = nullptr;
};

/// The blocks of experts that `options` has.
std::vector<ParameterRange> blocks_of_experts(const ZeroOptions& options);

/// ZeRO over the ranks of a communicator [Rajbhandari et al. 2020, "ZeRO: Memory optimizations
/// toward training trillion parameter models", Sec. 5]: a rank keeps its part of each block
/// (zero_shards.h) of the optimizer's state (stage 1), of the gradients too (2), of the parameters
/// too (3).
///  - A block's gradients are reduce-scattered as soon as they are final, by a thread of its own:
///  in
///    the last pass of a step (1), or in every pass, because no rank keeps whole ones (2, 3).
///  - Then each rank updates its part, and blocks are gathered: all of them at once (1, 2), or each
///    when a pass uses it (3).
/// Sums are in the order of the ranks, so that stage 1 gives every rank the bits of an all-reduce
/// that sums directly (executor/comm/communicator.h), and so do 2 and 3 where a step is one pass.
/// All ranks have the same bits, every time, with and without overlap.
///
/// With stages 2 and 3 the view's gradients, and with 3 its values, are of PagedBuffers: what is
/// not in use takes no memory.
class ZeroExchange : public GradientExchange {
 public:
  /// Stage 3. A block's values are on their way: they are to be used soon.
  virtual void prefetch(std::size_t block) = 0;
  /// Until the values are there.
  virtual void wait_for(std::size_t block) = 0;
  /// They are not used any more, until the next prefetch.
  virtual void release(std::size_t block) = 0;

  /// What it keeps beside the view: parts of state, and buffers of messages.
  virtual Bytes held() const = 0;
};
std::unique_ptr<ZeroExchange> make_zero_exchange(Communicator& communicator, ZeroOptions options);

}  // namespace reckon
