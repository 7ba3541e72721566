#include "executor/kubernetes/interruption_log.h"

#include <algorithm>
#include <utility>

namespace reckon::kubernetes {

KeptInterruption* InterruptionLog::find(std::int64_t attempt) {
  const auto at = std::ranges::find_if(
      kept_, [&](const KeptInterruption& k) { return k.record.attempt == attempt; });
  return at != kept_.end() ? &*at : nullptr;
}

void InterruptionLog::note(KeptInterruption kept) {
  if (KeptInterruption* before = find(kept.record.attempt))
    *before = std::move(kept);
  else
    kept_.push_back(std::move(kept));
  unwritten_ = true;
  flush();
}

void InterruptionLog::drop(std::int64_t attempt) {
  const auto is_of = [&](const KeptInterruption& k) { return k.record.attempt == attempt; };
  if (std::erase_if(kept_, is_of) == 0) return;
  unwritten_ = true;
  flush();
}

void InterruptionLog::settle(const InterruptionRecord& record) {
  KeptInterruption* kept = find(record.attempt);
  if (kept == nullptr) return note({.record = record});
  kept->record = record;
  kept->open = false;
  unwritten_ = true;
  flush();
}

void InterruptionLog::flush() {
  constexpr std::chrono::seconds kBetweenTries{2};
  const auto now = std::chrono::steady_clock::now();
  if (!unwritten_ || (failed_ && now - written_ < kBetweenTries)) return;
  written_ = now;
  write();
}

void InterruptionLog::write() {
  try {
    set_interruptions(kubectl_, state_.run, kept_);
    unwritten_ = failed_ = false;
  } catch (const KubectlError&) {
    failed_ = true;
  }
}

std::vector<KeptInterruption> InterruptionLog::counted(std::int64_t first_attempt) const {
  std::vector<KeptInterruption> counted;
  std::ranges::copy_if(kept_, std::back_inserter(counted), [&](const KeptInterruption& kept) {
    return kept.record.attempt >= state_.counted_from && kept.record.attempt < first_attempt;
  });
  return counted;
}

EarlierEnd earlier_end(const KeptInterruption& kept) { return {kept.record.cause, kept.futile}; }

}  // namespace reckon::kubernetes
