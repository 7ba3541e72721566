#pragma once
#include "sim/measurement/measurements.h"

namespace reckon {

/// The Timeline of a run in the simulator's words, from what it measured: "initialize", "restore",
/// "training", "save" (only where training stood still), "emergency save", "backoff", and marks of
/// interruptions; then the spans and marks that the run recorded itself. Spans of the job do not
/// overlap and follow one another.
Timeline timeline_of(const Measurements& measurements);

/// How long the run went on until its last recorded end, from its first start. Behind an end that
/// was recorded until somebody starts it again it does not go on; a part whose end nobody recorded
/// (kill -9) is taken to go on until the next begins, as in RunSpending. 0: no end was recorded.
Seconds time_running(const Measurements& measurements);

}  // namespace reckon
