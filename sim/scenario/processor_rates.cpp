#include "sim/scenario/processor_rates.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// Where `x` lies among ascending points: between `index` and the next, `share` of the way, by
/// logarithms. Beyond the ends: at the end.
struct Place {
  std::size_t index = 0;
  double share = 0;
};

template <class Points, class Value>
Place place_of(const Points& points, double x, Value value) {
  std::size_t next = 0;
  while (next < points.size() && double(value(points[next])) < x) ++next;
  if (next == 0) return {};
  if (next == points.size()) return {.index = next - 1, .share = 0};
  const double below = std::log(double(value(points[next - 1])));
  const double above = std::log(double(value(points[next])));
  return {.index = next - 1, .share = (std::log(x) - below) / (above - below)};
}

ProductTimes slower(ProductTimes products, double factor) {
  for (Seconds& time : products.times) time *= factor;
  return products;
}
StreamTimes slower(StreamTimes streams, double factor) {
  for (StreamTimes::Pass& pass : streams.passes) pass.time *= factor;
  return streams;
}

}  // namespace

FlopsPerSecond ProductTimes::rate(double m, double n, double k) const {
  const std::size_t count = extents.size();
  RECKON_CHECK(count > 0 && times.size() == count * count * count);
  const auto of = [&](double x) { return place_of(extents, x, [](std::int64_t e) { return e; }); };
  const std::array<Place, 3> places{of(m), of(n), of(k)};
  double log_rate = 0;
  for (unsigned corner = 0; corner < 8; ++corner) {
    double weight = 1, flops = 2;
    std::size_t at = 0;
    for (std::size_t axis = 0; axis < places.size(); ++axis) {
      const bool upper = ((corner >> axis) & 1U) != 0;
      const Place& p = places[axis];
      weight *= upper ? p.share : 1 - p.share;
      const std::size_t index = std::min(p.index + (upper ? 1 : 0), count - 1);
      at = at * count + index;
      flops *= double(extents[index]);
    }
    if (weight > 0) log_rate += weight * std::log(flops / times[at].count());
  }
  return FlopsPerSecond{std::exp(log_rate)};
}

Seconds ProductTimes::time(double m, double n, double k) const {
  return Flops{2 * m * n * k} / rate(m, n, k);
}

BytesPerSecond StreamTimes::rate(Bytes bytes) const {
  RECKON_CHECK(!passes.empty());
  const Place p = place_of(passes, bytes.v, [](const Pass& pass) { return pass.bytes.v; });
  const auto log_rate = [&](std::size_t i) {
    const Pass& pass = passes[std::min(i, passes.size() - 1)];
    return std::log(pass.bytes.v / pass.time.count());
  };
  return BytesPerSecond{
      std::exp((1 - p.share) * log_rate(p.index) + p.share * log_rate(p.index + 1))};
}

Seconds StreamTimes::time(Bytes bytes) const { return bytes / rate(bytes); }

WorkerRates ProcessorRates::of_worker(int threads, int busy) const {
  const double turns = std::max(1.0, double(threads) * double(busy) / double(cores));
  const double share = double(cores) / double(std::min(threads, cores));
  const bool alone = threads <= 1;  // with what one core does
  return {.threads = threads,
          .products = alone ? slower(apart, turns) : slower(together, turns * share),
          .each = slower(apart, turns),
          .streams = alone ? slower(streams_apart, turns) : slower(streams, turns * share)};
}

}  // namespace reckon
