#pragma once
#include <span>
#include <string_view>

#include "sim/step/network/collectives.h"

// The all-reduces between accelerators: all that the simulator knows of one stands in its row of
// all_reduces.cpp.
namespace reckon {

/// How launchers ask NCCL for it.
struct NcclSetting {
  std::string_view variable, value;  // "": NCCL has no such algorithm
};

struct AllReduceAlgorithm {
  AllReduceKind kind;
  bool automatic;   // `automatic` may take it
  bool in_network;  // needs Fabric::reduces
  /// Its flows: folded, or of every rank, link and round.
  Collective (*graph)(const Fabric& fabric, Bytes size, bool fold);
  /// The time of the graph in closed form, of two ranks and more.
  Seconds (*time)(const Fabric& fabric, Bytes size);
  /// What the rank that sends most has on the wire, of two ranks and more.
  Bytes (*sent)(const Fabric& fabric, Bytes size);
  NcclSetting nccl;
  bool runs_on(const Fabric& fabric) const { return !in_network || fabric.reduces; }
};

/// All of them, by whom a tie goes to. `automatic` takes what is fastest at the size: ring or tree,
/// as NCCL (graph/tuning.cc), which has no hierarchical one, or the network where that adds up.
std::span<const AllReduceAlgorithm> all_reduces();
/// `kind` is no `automatic` (checked).
const AllReduceAlgorithm& all_reduce_of(AllReduceKind kind);

/// What the rank that sends most has on the wire; `kind` is no `automatic`. On a torus as a ring.
Bytes sent_in_all_reduce(const Fabric& fabric, Bytes size, AllReduceKind kind);

struct TimedAllReduce {
  AllReduceKind kind = AllReduceKind::ring;
  Seconds time{};
};
/// The one asked for; `automatic`: the fastest of `all` that it may take. `time` of a row.
template <class Time>
TimedAllReduce chosen_all_reduce(std::span<const AllReduceAlgorithm> all, const Fabric& fabric,
                                 AllReduceKind kind, Time time) {
  TimedAllReduce best{.time = Seconds::max()};
  for (const AllReduceAlgorithm& each : all) {
    if (each.kind == kind) return {kind, time(each)};
    if (kind != AllReduceKind::automatic || !each.automatic || !each.runs_on(fabric)) continue;
    const Seconds taken = time(each);
    if (taken < best.time) best = {each.kind, taken};
  }
  return best;
}
/// By the closed forms.
TimedAllReduce all_reduce_time(const Fabric& fabric, Bytes size, AllReduceKind kind);

}  // namespace reckon
