#pragma once
#include <array>
#include <cstdint>

#include "sim/base/money.h"
#include "sim/cluster/billing.h"
#include "sim/cluster/life/life.h"
#include "sim/cluster/progress.h"

// Where the job's accelerator time and the money went. Integers: parts add up to the whole exactly.
namespace reckon {

class TimeLedger {
 public:
  void add(Badput cause, int accelerators, SimDuration time) {
    badput_[static_cast<std::size_t>(cause)] += accelerator_time(accelerators, time);
  }
  void add_training(int accelerators, const Stretch& stretch);
  /// A checkpoint holds all work done so far.
  void work_is_safe();
  /// An interruption: the work since the last completed checkpoint is to be done again.
  void work_is_lost();
  /// Of the work since the last completed checkpoint in the storage a share, 0..1, is to be done
  /// again; the rest is held elsewhere.
  void work_is_lost(double share);
  /// Splits the useful time into goodput, waiting for input and waiting for slow nodes, checks the
  /// sum against `total`, and adds all of it to the result. What was spent on work, that which was
  /// lost included, is given back.
  AcceleratorTime close(double input_share, double straggler_share, AcceleratorTime total,
                        LifeResult& result) const;

 private:
  AcceleratorTime safe_, copied_, unsafe_;  // time spent on work
  std::array<AcceleratorTime, kBadputCauses> badput_{};
};

class CostLedger {
 public:
  void add(CostPart part, NanoUsd amount) {
    parts_[static_cast<std::size_t>(part)] += amount;
    bill_ += amount;
  }
  /// bill: what the provider asks for this lease; the parts are our split of it.
  void add(const LeaseCharge& lease);
  void close(LifeResult& result) const;

 private:
  std::array<NanoUsd, kCostParts> parts_{};
  NanoUsd bill_;
};

}  // namespace reckon
