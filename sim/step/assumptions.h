#pragma once
#include "sim/base/quantity.h"

// Constants of the training frameworks' code that the step model follows, each with where it was
// read. What is measured or assumed, with a range, is in the catalog and reaches the Plan.
namespace reckon::step_assumptions {

/// PyTorch DDP closes a gradient bucket at 25 MiB, the first (the network's last layers) at 1 MiB,
/// so that the first reduction starts early. [Li et al. 2020, "PyTorch Distributed", VLDB 13(12),
/// Sec. 3.2.3 and 4.1; torch/nn/parallel/distributed.py bucket_cap_mb, reducer.hpp
/// kDefaultFirstBucketBytes]
inline constexpr Bytes kBucketSize{25.0 * 1024 * 1024};
inline constexpr Bytes kFirstBucketSize{1.0 * 1024 * 1024};

/// A worker of a parameter-server job sends and receives its variables in so many groups, in the
/// order of the layers. TensorFlow moves each variable by itself; 16 keeps the last, unhidden group
/// as small as a large layer.
inline constexpr int kParameterServerGroups = 16;
/// Asynchronous workers are simulated one by one: fewer groups for each where there are many of
/// them. What is lost is a little of the overlap.
constexpr int asynchronous_groups(int workers) {
  constexpr int kAll = 256, kMost = 8, kFewest = 2;
  const int each = kAll / (workers > 0 ? workers : 1);
  return each < kFewest ? kFewest : each > kMost ? kMost : each;
}

}  // namespace reckon::step_assumptions
