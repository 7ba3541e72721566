#include "sim/step/overlap.h"

namespace reckon {

Seconds contention(const HiddenTransfer& t, double by_processors, double slowdown) {
  if (t.time.count() <= 0 || t.sent.v <= 0) return {};
  return slowdown * by_processors * std::min(t.time, t.sent / t.inside);
}

}  // namespace reckon
