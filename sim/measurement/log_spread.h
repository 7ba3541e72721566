#pragma once
#include <cmath>

#include "sim/measurement/calibration/catalog_parameter.h"

namespace reckon {

inline constexpr double kScoreOfP95 = 1.6448536269514722;  // standard normal quantile of 0.95

/// One standard deviation of the logarithm of a number whose 5th and 95th percentile are known; of
/// ranges that begin at 0 the upper half alone.
inline double log_spread(const ParameterValue& v) {
  if (v.low > 0) return std::log(v.high / v.low) / (2 * kScoreOfP95);
  return std::log(v.high / v.value) / kScoreOfP95;
}

}  // namespace reckon
