#pragma once
#include "sim/base/fact.h"
#include "sim/base/quantity.h"

// Numbers of the training frameworks that the step model rests on: none of a product or a price
// (those are catalog rows). Each with where it was read; `assumed` ones are general knowledge with
// the range in which they lie.
namespace reckon::step_assumptions {

/// PyTorch DDP closes a gradient bucket at 25 MiB, the first (the network's last layers) at 1 MiB,
/// so that the first reduction starts early. [Li et al. 2020, "PyTorch Distributed", VLDB 13(12),
/// Sec. 3.2.3 and 4.1; torch/nn/parallel/distributed.py bucket_cap_mb, reducer.hpp
/// kDefaultFirstBucketBytes]
inline constexpr Bytes kBucketSize{25.0 * 1024 * 1024};
inline constexpr Bytes kFirstBucketSize{1.0 * 1024 * 1024};

/// Memory that is gone before the first tensor: the runtime's context, loaded kernels, library
/// handles, the caching allocator's rounding. General knowledge: 0.4 GB (Volta) to 1.2 GB (Hopper
/// with NCCL).
inline constexpr Fact<Bytes> kFrameworkReserve{Bytes{0.75e9}, Bytes{0.4e9}, Bytes{1.2e9},
                                               SourceId::user};

/// Memory bandwidth of a host, for each vCPU. General knowledge: a two-socket server of 96 to 112
/// vCPUs has 200-300 GB/s.
inline constexpr Fact<BytesPerSecond> kHostBandwidthPerVcpu{
    BytesPerSecond{2.5e9}, BytesPerSecond{1.5e9}, BytesPerSecond{4e9}, SourceId::user};

/// Standard deviation over mean of one worker process' step time from step to step (host
/// scheduling, input, clocks). General knowledge; [Chen et al. 2016, "Revisiting Distributed
/// Synchronous SGD", Fig. 3] has a body this narrow with a long tail, which backup workers cut off
/// and this normal distribution lacks.
inline constexpr Fact<double> kStepJitter{0.03, 0.0, 0.10, SourceId::user};

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
