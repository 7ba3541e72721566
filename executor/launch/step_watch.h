#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/quantity.h"

// Whether an attempt still makes steps, by what is told of them. Where reckon-worker reports its
// phases to its watcher, on this machine, the gang itself looks (GangOptions::progress_deadline).
// Of a program that is not ours, and of pods, nobody sees whether they save, evaluate or hang.
namespace reckon {

/// Processes of reckon-worker hang that report no progress for so long: `hang` (0: never), else a
/// minute or 20 of the forecast's steps, whichever is longer.
Seconds progress_deadline(std::optional<Seconds> hang, Seconds forecast_step);

/// How long a step may take to be told of.
struct StepPatience {
  Seconds step{};                // 0: for ever
  double of_longest = 0;         // and so many of the attempt's longest waits between two steps
  std::optional<Seconds> first;  // an attempt's first; nullopt: for ever
};
/// `hang`, as the user knows the program. Else half an hour, or 20 of its longest waits: an
/// evaluation or a save between two steps may be longer than many of these. An attempt that told of
/// no step is waited for.
StepPatience patience_with_program(std::optional<Seconds> hang);
/// progress_deadline(), and three times the longest that may lie between two steps as forecast, a
/// save or an evaluation, but five minutes at least, as GangOptions::start_deadline allows a save.
/// Three times that before the first step: a start, reading a checkpoint, and the step.
StepPatience patience_with_pods(std::optional<Seconds> hang, Seconds forecast_step,
                                Seconds forecast_between);

/// How long a watcher listened since it last asked: where it stood still itself it has heard
/// nothing of what was told meanwhile, so that longer than five seconds does not count.
class ListenedTime {
 public:
  Seconds since_last() {
    constexpr Seconds kStoodStill{5};
    const auto now = std::chrono::steady_clock::now();
    return std::min(kStoodStill, Seconds(now - std::exchange(last_, now)));
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class StepWatch {
 public:
  /// Of a job of so many steps: what comes behind the last one takes as long as it takes.
  StepWatch(StepPatience patience, std::int64_t steps) : patience_(patience), steps_(steps) {}

  void begin();  // an attempt
  /// So many steps are done, as somebody in the attempt told. The same number again tells nothing.
  void told(std::int64_t done);
  /// Something else was told that shows that the program lives: a save.
  void lives() { silence_ = {}; }
  /// Time went by in which a step would have been heard of.
  void pass(Seconds time) { silence_ += time; }

  bool hangs() const;
  /// "no step was told for 30 min behind step 120"
  std::string words() const;

 private:
  Seconds limit() const;  // 0: none

  StepPatience patience_;
  std::int64_t steps_, done_ = 0;
  int told_ = 0;  // of the attempt: 0, 1, more
  Seconds silence_{}, longest_{};
};

}  // namespace reckon
