#include "sim/measurement/slow_ranks_outlook.h"

#include <algorithm>
#include <cmath>

namespace reckon {

RunEnds ends_with_replacement(const LiveEstimate& now, Seconds elapsed, std::optional<Usd> spent,
                              const SlowRank& slow, Seconds pause) {
  // A step cannot become shorter by more than its slowest part does.
  const double least = std::min(1.0, slow.usual / slow.own);
  const double share = now.step > Seconds{0} ? 1 - (slow.own - slow.usual) / now.step : 1;
  const double of_step = std::clamp(share, least, 1.0);
  RunEnds ends;
  for (const double time : now.times) {
    const double rest = std::max(0.0, time - elapsed.count());
    ends.times.push_back(elapsed.count() + pause.count() + of_step * rest);
  }
  if (!spent) return ends;
  for (std::size_t k = 0; k < now.costs.size(); ++k) {
    const double before = now.times[k] - elapsed.count(), then = ends.times[k] - elapsed.count();
    const bool goes_on = before > 0 && std::isfinite(before);
    const double rest = std::max(0.0, now.costs[k] - spent->v);
    ends.costs.push_back(spent->v + (goes_on ? rest * then / before : rest));
  }
  return ends;
}

}  // namespace reckon
