#pragma once
#include <vector>

#include "sim/base/money.h"
#include "sim/forecast/rates.h"
#include "sim/measurement/measurements.h"

namespace reckon {

/// What a run has spent at any moment while it goes on. Its parts lie between a start of `reckon
/// run` and the end that it recorded; between two parts it holds no nodes. A part whose end nobody
/// recorded (kill -9) is taken to go on until the next begins: nobody gave its nodes back.
class RunSpending {
 public:
  /// `runs`, `ends`: records of the earlier parts, whose plans may have had other prices: what
  /// their ends say was spent holds, and `rates` only where they say nothing. `now`: the begin of
  /// this part, since the first start.
  RunSpending(RunRates rates, const std::vector<RunRecord>& runs,
              const std::vector<EndRecord>& ends, Seconds now);

  /// All that is spent when this part ends at `until`, rounded as the provider bills it.
  NanoUsd at(Seconds until) const;
  NanoUsd before() const { return before_; }  // of that: by the parts that have ended
  Seconds since() const { return since_; }    // from when on this part's nodes count

 private:
  /// Of the plan's nodes, held from `begin` to `end`.
  NanoUsd charged(Seconds begin, Seconds end) const;

  RunRates rates_;
  NanoUsd before_;
  Seconds since_{};
};

}  // namespace reckon
