#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "sim/base/quantity.h"
#include "sim/scenario/plan.h"
#include "sim/step/network/network.h"

// What a small sample of a job's steps says of all of them.
namespace reckon {

/// How many of the first values belong to the warm-up: the cut behind which the standard error of
/// the mean is smallest, among the first half of the values [White 1997, "An effective truncation
/// heuristic for bias reduction in simulation output", Simulation 69(6), eq. 1]. The first value
/// always does, where there are two: it fills caches and makes connections.
std::size_t warmup_length(std::span<const double> values);  // of any one unit

struct TrialFit {
  std::size_t warmup = 0;  // values left out
  std::size_t values = 0;  // that count
  /// Mean of a step, and the 90 % interval in which the mean of all steps to come lies, if they are
  /// like these: Student's t over means of blocks (BlockMeans), at least 0.
  Seconds mean{}, low{}, high{};
};
inline constexpr std::size_t kLeastTrialSteps = 5;  // that count
/// nullopt: fewer than kLeastTrialSteps remain. The last of `seconds` came last.
std::optional<TrialFit> fit_trial(std::span<const double> seconds);

/// The plan with the speed of its worker pool such that one worker by itself (one_worker.h) takes
/// the measured step: rates of arithmetic and of memory are all scaled alike, what workers tell
/// each other stays as it was forecast. Their uncertainty becomes that of the measured mean.
/// nullopt: no speed explains it (a part of the step that does not depend on speed takes longer
/// than all of the measured step), or one_worker() has none.
std::optional<Plan> with_measured_step(const Plan& plan, const NetworkModel& network,
                                       const TrialFit& measured);

}  // namespace reckon
