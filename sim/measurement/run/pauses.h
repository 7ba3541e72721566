#pragma once
#include "sim/measurement/measurements.h"

// A run that was stopped goes on when somebody starts it again; the time between is not the run's.
namespace reckon {

/// How long the run went on until its last recorded end, from its first start. Behind an end that
/// was recorded until somebody starts it again it does not go on; a part whose end nobody recorded
/// (kill -9) is taken to go on until the next begins, as in RunSpending. 0: no end was recorded.
Seconds time_running(const Measurements& measurements);

/// How long it did not, before its last recorded end.
Seconds time_paused(const Measurements& measurements);

/// The same records on a clock that stands still while the run is paused.
Measurements without_pauses(Measurements measurements);

}  // namespace reckon
