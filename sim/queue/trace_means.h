#pragma once
#include <vector>

#include "sim/queue/trace.h"

namespace reckon {

/// The means over all of `results` into `out`, the first of them: statistic by statistic, curves
/// point by point, each over those that have it.
void take_mean(TraceResult& out, const std::vector<TraceResult>& results);

}  // namespace reckon
