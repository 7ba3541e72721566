#include "executor/probe/repeat.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/base/check.h"

namespace reckon {

Repeated repeat(const RepeatRule& rule, const std::function<Seconds()>& once) {
  constexpr std::int64_t kWarmupAtLeast = 2;
  constexpr double kStillFaster = 0.95;
  Repeated out;
  double fastest = std::numeric_limits<double>::infinity();
  for (double spent = 0;;) {
    const double seconds = once().count();
    spent += seconds;
    ++out.warmup;
    const bool faster = seconds < kStillFaster * fastest;
    fastest = std::min(fastest, seconds);
    if (spent >= rule.budget.count() || (out.warmup >= kWarmupAtLeast && !faster)) break;
  }
  double spent = 0;
  while (std::cmp_less(out.seconds.size(), rule.at_least) ||
         (spent < rule.budget.count() && std::cmp_less(out.seconds.size(), rule.at_most))) {
    out.seconds.push_back(once().count());
    spent += out.seconds.back();
  }
  return out;
}

Repeated repeat_timed(const RepeatRule& rule, std::int64_t inner,
                      const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  Repeated out = repeat(rule, [&]() -> Seconds {
    const auto begin = Clock::now();
    for (std::int64_t k = 0; k < inner; ++k) body();
    return Clock::now() - begin;
  });
  for (double& seconds : out.seconds) seconds /= double(inner);
  return out;
}

void summarize(const Repeated& times, ProbeRecord& into) {
  RECKON_CHECK(!times.seconds.empty());
  std::vector<double> sorted = times.seconds;
  std::ranges::sort(sorted);
  const std::size_t n = sorted.size();
  const double count = double(n);
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (const double s : sorted) squares += (s - mean) * (s - mean);
  const std::size_t half = n / 2;
  into.median = Seconds{n % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2};
  into.min = Seconds{sorted.front()};
  into.p99 = Seconds{sorted[std::size_t(std::ceil(0.99 * count)) - 1]};
  into.variation = n > 1 && mean > 0 ? std::sqrt(squares / (count - 1)) / mean : 0;
  into.repetitions = std::int64_t(n);
  into.warmup = times.warmup;
}

}  // namespace reckon
