#include "sim/cluster/ledger.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace reckon {
namespace {

AcceleratorTime share_of(const AcceleratorTime& whole, double share) {
  const double part = std::round(double(whole.n) * std::clamp(share, 0.0, 1.0));
  return AcceleratorTime{std::min(static_cast<Int128>(part), whole.n)};
}

}  // namespace

void TimeLedger::add_training(int accelerators, const Stretch& stretch) {
  if (stretch.written) {
    safe_ += copied_;
    copied_ = {};
  }
  if (stretch.saved) work_is_safe();
  safe_ += accelerator_time(accelerators, stretch.safe);
  if (stretch.copies) {
    copied_ += unsafe_;
    unsafe_ = {};
    copied_ += accelerator_time(accelerators, stretch.copied);
  }
  unsafe_ += accelerator_time(accelerators, stretch.unsafe);
  if (stretch.stored > 0) {
    const AcceleratorTime stored = share_of(unsafe_, stretch.stored);
    safe_ += stored;
    unsafe_ = unsafe_ - stored;
  }
  add(Badput::checkpoint_save, accelerators, stretch.saving);
}

void TimeLedger::work_is_safe() {
  safe_ += copied_;
  safe_ += unsafe_;
  copied_ = unsafe_ = {};
}

void TimeLedger::work_is_lost() {
  badput_[static_cast<std::size_t>(Badput::lost_work)] += copied_;
  badput_[static_cast<std::size_t>(Badput::lost_work)] += unsafe_;
  copied_ = unsafe_ = {};
}

void TimeLedger::work_is_lost(double share) {
  unsafe_ += copied_;
  copied_ = {};
  const AcceleratorTime lost = share_of(unsafe_, share);
  badput_[static_cast<std::size_t>(Badput::lost_work)] += lost;
  unsafe_ = unsafe_ - lost;
}

AcceleratorTime TimeLedger::close(double input_share, double straggler_share, AcceleratorTime total,
                                  LifeResult& result) const {
  RECKON_CHECK(unsafe_ == AcceleratorTime{} && copied_ == AcceleratorTime{});
  std::array<AcceleratorTime, kBadputCauses> badput = badput_;
  const double share = std::clamp(input_share, 0.0, 1.0);
  const AcceleratorTime input{static_cast<Int128>(std::round(double(safe_.n) * share))};
  badput[static_cast<std::size_t>(Badput::data_loading)] += input;
  const AcceleratorTime slow =
      straggler_share > 0 ? share_of(safe_ - input, straggler_share) : AcceleratorTime{};
  badput[static_cast<std::size_t>(Badput::stragglers)] += slow;
  const AcceleratorTime goodput = safe_ - input - slow;
  AcceleratorTime sum = goodput;
  for (const AcceleratorTime& part : badput) sum += part;
  RECKON_CHECK(sum == total);
  result.goodput += goodput;
  result.total += total;
  for (std::size_t c = 0; c < kBadputCauses; ++c) result.badput[c] += badput[c];
  AcceleratorTime work = safe_;
  work += badput_[static_cast<std::size_t>(Badput::lost_work)];
  return work;
}

void CostLedger::add(const LeaseCharge& lease) {
  parts_[static_cast<std::size_t>(CostPart::machines)] += lease.machines;
  parts_[static_cast<std::size_t>(CostPart::accelerators)] += lease.accelerators;
  parts_[static_cast<std::size_t>(CostPart::idle)] += lease.idle;
  parts_[static_cast<std::size_t>(CostPart::spares)] += lease.spares;
  bill_ += lease.total();
}

void CostLedger::close(LifeResult& result) const {
  NanoUsd sum;
  for (const NanoUsd& part : parts_) sum += part;
  RECKON_CHECK(sum == bill_);
  result.cost = parts_;
  result.bill = bill_;
}

}  // namespace reckon
