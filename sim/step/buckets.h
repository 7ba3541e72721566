#pragma once
#include "sim/base/quantity.h"
#include "sim/step/assumptions.h"

namespace reckon {

/// When a bucket of gradients is full and its reduction begins: the one rule of forecast
/// (sim/step/overlap.h) and run (executor/comm/all_reduce_exchange.h). Layers are added in the
/// order in which the backward pass makes their gradients and are never split.
class BucketRule {
 public:
  /// Adds a layer to the open bucket; true: that filled it, and the next layer opens another.
  bool add(Bytes gradients) {
    open_ += gradients;
    if (open_ < limit_) return false;
    open_ = {};
    limit_ = step_assumptions::kBucketSize;
    return true;
  }

 private:
  Bytes open_{};
  Bytes limit_ = step_assumptions::kFirstBucketSize;
};

}  // namespace reckon
