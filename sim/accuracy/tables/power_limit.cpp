#include "sim/accuracy/tables/power_limit.h"

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

double misfit_of_law(std::span<const std::vector<LimitedEpoch>> tasks, const PowerLimitLaw& law) {
  double sum = 0;
  for (const auto& epochs : tasks)
    for (const LimitedEpoch& e : epochs)
      sum += std::abs(std::log(under_limit(epochs.back(), e.limit_watts, law).time / e.time));
  return sum;
}

}  // namespace

LimitedEpoch under_limit(const LimitedEpoch& given, double limit_watts, const PowerLimitLaw& law) {
  if (limit_watts >= given.watts) return {limit_watts, given.time, given.watts};
  LimitedEpoch e{limit_watts, given.time, limit_watts};
  // Near its static power a device runs at its lowest clock, a fiftieth of its dynamic power.
  constexpr double kLeast = 0.02;
  const double dynamic = given.watts - law.static_watts;
  const double share =
      dynamic > 0 ? std::max(kLeast, (limit_watts - law.static_watts) / dynamic) : 1;
  e.time = given.time / std::pow(share, 1 / law.exponent);
  return e;
}

PowerLimitLaw fit_power_limit(std::span<const std::vector<LimitedEpoch>> tasks) {
  constexpr int kShares = 14, kExponents = 14;
  constexpr double kShareStep = 0.03, kExponentStep = 0.5;  // of the highest limit; of the exponent
  double highest = 0;
  for (const auto& epochs : tasks)
    if (!epochs.empty()) highest = std::max(highest, epochs.back().limit_watts);
  PowerLimitLaw best;
  if (highest == 0) return best;
  double least = misfit_of_law(tasks, best);
  for (int s = 0; s <= kShares; ++s)
    for (int a = 0; a <= kExponents; ++a) {
      const PowerLimitLaw law{s * kShareStep * highest, 1 + a * kExponentStep};
      const double sum = misfit_of_law(tasks, law);
      if (sum >= least) continue;
      least = sum;
      best = law;
    }
  return best;
}

}  // namespace reckon
