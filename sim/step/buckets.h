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

/// Layer groups of parameter servers, of about equal bytes: the one rule of forecast
/// (sim/step/servers/parameter_server.h) and run (executor/comm/parameter_server/server/keys.h).
/// Layers are added in the order of the forward pass; what is left open at the end belongs to the
/// last group.
class ServerGroupRule {
 public:
  ServerGroupRule(Bytes variables, int groups) : share_(variables / double(groups)) {}
  /// True: that filled the group.
  bool add(Bytes variables) {
    open_ += variables;
    if (open_ < share_) return false;
    open_ = {};
    return true;
  }

 private:
  Bytes open_{}, share_;
};

}  // namespace reckon
