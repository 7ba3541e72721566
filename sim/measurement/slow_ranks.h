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
  /// A step of a rank is done. `at`: its number; where workers take steps of their own its end, in
  /// seconds: ranks are compared over the same steps, or the same time, in whatever order they are
  /// read. The ranks that are slow by now and were not before: its median over the last 20 steps
  /// that all of its kind have told of is more than 1.25 times the median of the medians of the
  /// others over the same, and more than three standard deviations of these above it (1.4826 times
  /// their median absolute deviation). Each rank is told once an attempt; a kind needs two ranks.
  /// Of two the deviation is 0, and the factor alone decides.
  ///
  /// An other that has told of nothing since is waited for until this rank has done 40 steps more.
  /// Then it is compared without it, if half of those of which any step is known remain, and two at
  /// least: an elastic job may be smaller than its plan, and the logs of some pods are not read.
  std::vector<SlowRank> add(int rank, double at, Seconds own);

 private:
  struct OwnStep {
    double at = 0, seconds = 0;
  };
  double last_of_all(int kind) const;  // of those of the kind that have told of any
  std::size_t steps_behind(std::size_t rank, double at) const;
  /// Seconds; nullopt: too few steps.
  std::optional<double> median_until(std::size_t rank, double at) const;
  /// The last step that the rank and all others that are waited for have told of.
  double compared_until(std::size_t rank) const;
  /// Empty: not to be judged by.
  std::vector<double> medians_of_others(std::size_t rank, double until) const;
  std::optional<SlowRank> judge(std::size_t rank);

  std::vector<int> kinds_;
  std::vector<std::deque<OwnStep>> recent_;  // by rank
  std::vector<bool> told_;
};

}  // namespace reckon
