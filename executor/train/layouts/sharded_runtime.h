#pragma once
#include <memory>
#include <vector>

#include "executor/comm/zero_exchange.h"
#include "executor/train/step_runtime.h"

namespace reckon {

/// A runtime on CPUs whose parameters and gradients take memory while they are used: for ZeRO's
/// stages 2 and 3.
class ShardedRuntime : public StepRuntime {
 public:
  /// Of whole parameters and gradients, now.
  virtual Bytes parameter_memory() const = 0;
};

/// `gathers`: with zero_stage 3, the exchange of exchange_blocks(); each block's parameters come
/// while the block before it is at work, and go after its last use. nullptr: they stay. All
/// arguments must outlive it.
std::unique_ptr<ShardedRuntime> make_sharded_runtime(const ModelGraph& model,
                                                     RuntimeOptions options, Workers& workers,
                                                     ZeroExchange* gathers);

}  // namespace reckon
