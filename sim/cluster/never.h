#pragma once
#include <algorithm>

#include "sim/base/quantity.h"

// What lies behind the end of every life. A job is submitted within ten years of the scenario's
// start and is cut three years after the last submit: what takes twenty years never happens, and a
// dozen of such times on top of one another are still on the clock.
namespace reckon {

inline constexpr Seconds kNever = std::chrono::hours(20 * 365 * 24);
inline constexpr double kNeverNanoseconds = 20 * 365 * 24 * 3600e9;

/// A duration in ticks of the clock, at most kNever. Errors: Overflow for NaN.
inline SimDuration clock_or_never(Seconds s) { return to_clock(std::min(s, kNever)); }

}  // namespace reckon
