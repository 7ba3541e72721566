#include "sim/serving/latency.h"

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

constexpr double kShortest = 1e-6, kLongest = 86'400;  // seconds
const double kGrowth = std::log(1.005);                // ln of a bin's end over its begin
const std::size_t kBins = std::size_t(std::ceil(std::log(kLongest / kShortest) / kGrowth)) + 1;

}  // namespace

LatencyHistogram::LatencyHistogram() : bins_(kBins, 0) {}

void LatencyHistogram::add(Seconds latency) {
  const double t = std::clamp(latency.count(), kShortest, kLongest);
  const auto bin = std::size_t(std::log(t / kShortest) / kGrowth);
  ++bins_[std::min(bin, kBins - 1)];
  ++count_;
  sum_ += latency;
  largest_ = std::max(largest_, latency);
}

void LatencyHistogram::add(const LatencyHistogram& other) {
  for (std::size_t k = 0; k < bins_.size(); ++k) bins_[k] += other.bins_[k];
  count_ += other.count_;
  sum_ += other.sum_;
  largest_ = std::max(largest_, other.largest_);
}

Seconds LatencyHistogram::mean() const { return count_ == 0 ? Seconds{} : sum_ / double(count_); }

Seconds LatencyHistogram::quantile(double p) const {
  if (count_ == 0) return Seconds{};
  const double rank = p * double(count_);
  double below = 0;
  for (std::size_t k = 0; k < bins_.size(); ++k) {
    const auto inside = double(bins_[k]);
    if (inside > 0 && below + inside >= rank) {
      const double way = std::clamp((rank - below) / inside, 0.0, 1.0);
      const Seconds t{kShortest * std::exp((double(k) + way) * kGrowth)};
      return std::min(t, largest_);
    }
    below += inside;
  }
  return largest_;
}

}  // namespace reckon
