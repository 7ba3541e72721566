#pragma once
#include <span>
#include <vector>

#include "sim/base/quantity.h"

// Time and power of the same work under a lower power limit.
namespace reckon {

/// One epoch under a limit.
struct LimitedEpoch {
  double limit_watts = 0;
  Seconds time{};
  double watts = 0;  // the mean while it ran
};

/// How an accelerator answers to its power limit. Of its power a share is there at any clock; the
/// rest grows as clock f times the square of the voltage, which rises with the clock, P_dynamic ~
/// f^a with a from 1 (voltage at its floor) to 3 and more [Mei, Wang, Chu 2017, "A survey and
/// measurement study of GPU DVFS on energy conservation", Digital Communications and Networks 3(2),
/// Sec. 2]. Work that waits for memory slows less than its clock, so that a comes out larger.
struct PowerLimitLaw {
  double static_watts = 0;
  double exponent = 3;
};

/// The same work under `limit` watts: where it drew W watts unlimited, the clock keeps under the
/// limit, f / f_0 = ((limit - static) / (W - static))^(1 / a), and the time goes as 1 / f; a limit
/// above W changes nothing. `given` was measured under the highest limit.
LimitedEpoch under_limit(const LimitedEpoch& given, double limit_watts, const PowerLimitLaw& law);

/// The law that predicts tasks best, each from its epoch under the highest limit: of static powers
/// of 0 to 42 % of the highest limit in steps of 3 % and exponents of 1 to 8 in halves the least
/// sum of |log(time predicted / measured)|. Each task's epochs are in ascending order of their
/// limits. None: 0 W and an exponent of 3.
PowerLimitLaw fit_power_limit(std::span<const std::vector<LimitedEpoch>> tasks);

}  // namespace reckon
