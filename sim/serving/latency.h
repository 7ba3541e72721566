#pragma once
#include <cstdint>
#include <vector>

#include "sim/base/quantity.h"

// The distribution of many latencies in little memory.
namespace reckon {

/// Counts in bins whose borders grow by 0.5 %, from 1 us to a day: a quantile is within 0.5 % of
/// the exact one, the mean and the largest are exact. Shorter and longer ones fall into the outer
/// bins.
class LatencyHistogram {
 public:
  LatencyHistogram();
  void add(Seconds latency);
  void add(const LatencyHistogram& other);
  std::uint64_t count() const { return count_; }
  Seconds mean() const;
  Seconds largest() const { return largest_; }
  /// p in 0..1; 0 s where nothing was counted.
  Seconds quantile(double p) const;

 private:
  std::vector<std::uint64_t> bins_;
  std::uint64_t count_ = 0;
  Seconds sum_{}, largest_{};
};

}  // namespace reckon
