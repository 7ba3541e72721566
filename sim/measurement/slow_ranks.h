#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "sim/measurement/measurements.h"

// Which ranks of a job are slow beyond their kind. A synchronous step takes as long for all ranks;
// what tells them apart is what each does by itself in it.
namespace reckon {

/// A rank's own part of a step: computing, waiting for samples, updating. What it waits for others
/// is not in it.
Seconds own_time(const StepRecord& step);

struct SlowRank {
  int rank = 0;
  Seconds own{}, usual{};  // medians: its own, and of the others of its kind
  std::size_t others = 0;  // it was compared with so many
  double factor() const { return own / usual; }
};
/// "takes 31 ms for its own part of a step, 1.8 times what the other 3 ranks like it take"
std::string to_text(const SlowRank& rank);

class SlowRanks {
 public:
  /// By rank: ranks of one kind do the same work on machines of one kind.
  explicit SlowRanks(std::vector<int> kinds);

  /// An attempt begins: its ranks may be elsewhere.
  void begin();
  /// A step of a rank is done. The ranks that are slow by now and were not before: its median over
  /// 20 steps is more than 1.25 times the median of the medians of the others of its kind, and more
  /// than three standard deviations of these above it (1.4826 times their median absolute
  /// deviation). Each rank is told once an attempt; a kind needs two ranks. Of two the deviation is
  /// 0, and the factor alone decides.
  ///
  /// Others of which 20 steps are not known are waited for until this rank has done 40. Then it is
  /// compared without them, if half of those of which any step is known remain, and two at least:
  /// an elastic job may be smaller than its plan, and the logs of some pods are not read.
  std::vector<SlowRank> add(int rank, Seconds own);

 private:
  std::optional<double> median_of(std::size_t rank) const;        // seconds; nullopt: too few steps
  std::vector<double> medians_of_others(std::size_t rank) const;  // empty: not to be judged by
  std::optional<SlowRank> judge(std::size_t rank);

  std::vector<int> kinds_;
  std::vector<std::deque<double>> recent_;  // by rank, seconds
  std::vector<std::size_t> done_;           // by rank: steps of the attempt
  std::vector<bool> told_;
};

}  // namespace reckon
