#pragma once
#include "sim/measurement/measurements.h"

namespace reckon {

/// The Timeline of a run in the simulator's words, from what it measured: "initialize", "restore",
/// "training", "save" (only where training stood still), "emergency save", "backoff", and marks of
/// interruptions; then the spans and marks that the run recorded itself. Spans of the job do not
/// overlap and follow one another.
Timeline timeline_of(const Measurements& measurements);

}  // namespace reckon
