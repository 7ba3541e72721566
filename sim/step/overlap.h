#pragma once
#include <span>
#include <vector>

#include "sim/step/compute.h"

// Gradient reduction behind the backward pass (docs/MODELS.md, "Overlap").
namespace reckon {

struct Bucket {
  Bytes size{};     // of gradients
  Seconds ready{};  // since the backward pass began
};

/// Buckets fill in the order in which the backward pass makes gradients (last layer first); a
/// layer's gradients are never split. No overlap: one bucket after the other as before, all ready
/// at the end of the backward pass.
std::vector<Bucket> gradient_buckets(const PlannedWorkload& job, const ComputeTimes& times,
                                     bool overlap);

struct OverlapResult {
  Seconds communication{};  // all reductions
  Seconds exposed{};        // after the end of the backward pass
};
/// Reductions run one after another on the network, each when its bucket is ready and the one
/// before is done: end_i = max(end_{i-1}, ready_i) + d_i; exposed = end_last - backward.
OverlapResult overlap(std::span<const Bucket> buckets, std::span<const Seconds> durations,
                      Seconds backward);

/// A collective that goes on behind arithmetic.
struct HiddenTransfer {
  Seconds time{};           // hidden
  Bytes sent{};             // by one device, hidden or not
  BytesPerSecond inside{};  // the device's fastest link
};
/// Arithmetic takes longer while a collective's kernels have a part of the device's processors and
/// power: `slowdown` (FrameworkRules::overlap_slowdown) for each second of transfer behind it, and
/// no more than if the device moved what it sends at full speed: over a slow network the same bytes
/// take no more of it. Kernels that wait for memory do with fewer processors: `by_processors` is
/// the share of the arithmetic that does not.
Seconds contention(const HiddenTransfer& transfer, double by_processors, double slowdown);

}  // namespace reckon
