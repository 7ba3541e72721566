#include "sim/step/overlap.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/step/buckets.h"
#include "sim/step/element_sizes.h"

namespace reckon {

std::vector<Bucket> gradient_buckets(const PlannedWorkload& job, const ComputeTimes& times,
                                     bool overlap) {
  const Bytes element = element_sizes(job).gradient;
  std::vector<Bucket> buckets;
  BucketRule rule;
  Bytes open{};
  Seconds at{};
  for (auto t = times.layers.rbegin(); t != times.layers.rend(); ++t) {
    const Bytes gradients =
        double(job.model.counts()[index(t->layer)].trainable_parameters) * element;
    at += t->backward;
    open += gradients;
    if (!rule.add(gradients)) continue;
    buckets.push_back({open, overlap ? at : times.backward});
    open = {};
  }
  if (open.v > 0) buckets.push_back({open, times.backward});
  return buckets;
}

OverlapResult overlap(std::span<const Bucket> buckets, std::span<const Seconds> durations,
                      Seconds backward) {
  RECKON_CHECK(buckets.size() == durations.size());
  OverlapResult r;
  Seconds end{};
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    end = std::max(end, buckets[i].ready) + durations[i];
    r.communication += durations[i];
  }
  r.exposed = std::max(Seconds{}, end - backward);
  return r;
}

Seconds contention(const HiddenTransfer& t, double by_processors, double slowdown) {
  if (t.time.count() <= 0 || t.sent.v <= 0) return {};
  return slowdown * by_processors * std::min(t.time, t.sent / t.inside);
}

}  // namespace reckon
