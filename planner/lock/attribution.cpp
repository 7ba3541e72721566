#include "planner/lock/attribution.h"

#include <cmath>

namespace reckon::planner {

std::optional<std::array<double, kCauses.size()>> shares_of(const Swaps& s) {
  for (const double figure : {s.then, s.again, s.edited, s.repriced, s.now})
    if (!std::isfinite(figure)) return std::nullopt;
  return std::array{s.edited - s.again, s.repriced - s.edited, s.now - s.repriced,
                    s.again - s.then};
}

}  // namespace reckon::planner
