#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/measurement/probe_record.h"

// How everything here is measured: again and again, the cold repetitions left out.
namespace reckon {

struct RepeatRule {
  Seconds budget{0.3};        // of measured time, warm-up apart
  std::int64_t at_least = 5;  // repetitions that count, whatever they take
  std::int64_t at_most = 2000;
};

/// Times of repetitions, in order, the warm-up left out.
struct Repeated {
  std::vector<double> seconds;
  std::int64_t warmup = 0;
};

/// `once` does the thing once and says how long it took. The warm-up ends with the first
/// repetition, the second or later, that is less than 5 % faster than the fastest before it (caches
/// are filled, pages are there, the clock no longer rises), or when it has taken as long as the
/// budget. What is done depends on the answers of `once` alone: ranks that hear the same times
/// repeat alike.
Repeated repeat(const RepeatRule& rule, const std::function<Seconds()>& once);

/// The same for a thing that is over sooner than a clock can tell: `body` is done `inner` times in
/// one repetition, whose time is divided by it.
Repeated repeat_timed(const RepeatRule& rule, std::int64_t inner,
                      const std::function<void()>& body);

/// Median, minimum, 99th percentile (nearest rank), variation and counts of `times`, at least one,
/// into the record.
void summarize(const Repeated& times, ProbeRecord& into);

}  // namespace reckon
