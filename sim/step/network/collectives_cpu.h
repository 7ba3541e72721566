#pragma once
#include <string_view>

#include "sim/step/network/collective_cost.h"

// All-reduces between processes on CPUs: what the executor runs and the forecast assumes.
namespace reckon {

/// Whether processes on CPUs sum `size` bytes directly where nothing is asked for. Every rank adds
/// up its n-th part of all ranks' values and sends the sum to all: two exchanges of all with all,
/// so 2 (a + (n-1) M / (n B)) with one rank a node, and the bytes of a ring. They do where all of
/// it fits into the first window of a TCP connection, 10 segments of 1,460 bytes [RFC 6928, Sec.
/// 2], so that flows that share a link cannot hinder each other. Else a ring: directly, three ranks
/// and more took 30 to 55 % longer on full links, which TCP shares unevenly between flows
/// (docs/measurements/2026-11-22-emulated-jobs.md).
bool summed_directly(Bytes size);

/// What of `strategy.all_reduce` processes on CPUs run: automatic, ring. The others are NCCL's.
bool runs_on_cpus(AllReduceKind kind);

struct WorkerAllReduce {
  std::string_view algorithm;  // "ring", "tree", "hierarchical", "direct"
  Seconds time{};
  Bytes sent_by_rank{};
};

/// How gradients are summed: as the strategy has it; where it leaves the choice and no accelerator
/// computes, directly or in a ring (summed_directly). On a torus along its axes.
struct GradientSum {
  AllReduceKind kind = AllReduceKind::automatic;
  bool on_cpus = false;

  template <class Cost>
  WorkerAllReduce operator()(const Fabric& fabric, Bytes size, const Cost& cost) const {
    AllReduceKind asked = kind;
    if (on_cpus && kind == AllReduceKind::automatic) {
      if (summed_directly(size))
        return {"direct", 2 * cost.all_to_all(fabric, size),
                sent_in_all_reduce(fabric, size, AllReduceKind::ring)};
      asked = AllReduceKind::ring;
    }
    const TimedAllReduce choice = cost.all_reduce(fabric, size, asked);
    return {to_text(choice.kind), choice.time, sent_in_all_reduce(fabric, size, choice.kind)};
  }
};
GradientSum gradient_sum(const Plan& plan, const PlannedStrategy& strategy);

}  // namespace reckon
