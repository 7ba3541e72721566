#pragma once
#include "sim/scenario/plan.h"

// How much memory plans take, so that it can be refused before it is taken.
namespace reckon {

/// Bytes of one planned job: most of it is its model, layer by layer. To a fifth.
double bytes_of(const PlannedWorkload& job);
/// Of several jobs each has a model of its own, and so has each of the plan's copies: the forecast
/// holds one, and each thread that simulates.
inline constexpr int kCopiesOfPlan = 2;

}  // namespace reckon
