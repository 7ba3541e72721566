#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/accuracy/scoring/accuracy.h"

// What a user does who has measured a little, and what our recommendation of a layout costs.
namespace reckon {

/// In each group of runs of one (source, model, variant, accelerator, precision, stack) the
/// `points` runs on the fewest accelerators are taken as measured: how much slower than predicted
/// they say that devices and links are (Slowing::explained, the mean of them) slows the rest, which
/// is returned. Among runs on equally
/// few accelerators those with the batch per accelerator that most of the group has come first,
/// then the earlier line. Intervals move with the predictions. Groups with no more runs than points
/// return none.
std::vector<ScoredRun> warm(std::span<const ScoredRun> cold, int points);

/// Of `runs` as warm() returned them those on more accelerators than their calibration points.
std::vector<ScoredRun> at_larger_scale(std::span<const ScoredRun> warm_runs,
                                       std::span<const ScoredRun> cold, int points);

/// The layout that we would take is that of the highest predicted rate.
/// Groups: same source, accelerators, model, global batch, sequence, precision, recomputation and
/// stack (nobody chooses a layout by changing the framework), with at least two layouts (strategy,
/// degrees, micro batch).
Regret regret_of(std::span<const ScoredRun> runs);

/// warm() and at_larger_scale(), scored; intervals from the other sources' warm residuals
/// (held_out_intervals.h).
WarmEvaluation evaluate_warm(std::span<const ScoredRun> cold, int points, const Catalog& catalog);

}  // namespace reckon
