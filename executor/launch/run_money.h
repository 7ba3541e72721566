#pragma once
#include <algorithm>
#include <optional>
#include <string>

#include "executor/launch/gang.h"
#include "executor/launch/run_files.h"
#include "sim/measurement/run/spending.h"

namespace reckon {

/// The money of a run, and its end where more would pass the budget. Whoever watches a run looks
/// ten times a second; between two looks a step may begin, which is taken to its end and saved.
class RunMoney {
 public:
  /// `save`: what a checkpoint is forecast to take. `to_stop`: what passes besides, from the word
  /// to stop until no node is held any more.
  RunMoney(RunRates rates, const EarlierPart& before, std::optional<Usd> budget, Seconds save,
           Seconds to_stop = Seconds{0})
      : spending_(std::move(rates), before.runs, before.ends, before.clock.now()),
        budget_(budget),
        save_(save),
        to_stop_(to_stop) {}

  const RunSpending& spending() const { return spending_; }
  std::optional<Usd> budget() const { return budget_; }
  /// A checkpoint took so long: the longest counts.
  void saved(Seconds took) { save_ = std::max(save_, took); }
  /// Would a step of so long, begun at the next look behind `now`, and its checkpoint pass the
  /// budget? Without one nothing does.
  bool passes(Seconds now, Seconds step) const;
  /// What the run is asked, or to stop because more would pass: from then on it is out of money.
  StopRequest request(StopRequest asked, Seconds now, Seconds step);
  bool is_out() const { return out_; }
  /// "0.39 USD of the budget of 0.40 USD are spent: one more step and its checkpoint would pass
  /// it".
  std::string reason(Seconds now) const;
  /// The same where not even a start does.
  std::string reason_not_to_start(Seconds now) const;

 private:
  RunSpending spending_;
  std::optional<Usd> budget_;
  Seconds save_, to_stop_;
  bool out_ = false;
};

/// RunEnd's exit code where the budget ended the run.
inline constexpr int kExitBudgetSpent = 4;

}  // namespace reckon
