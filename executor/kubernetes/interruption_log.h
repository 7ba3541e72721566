#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/kubernetes/run_state.h"
#include "executor/launch/supervise.h"

namespace reckon::kubernetes {

/// What interrupted a run, in the cluster as soon as it is known: whoever watches may be lost at
/// any time, and the next one counts on.
class InterruptionLog {
 public:
  /// Of a run as its state was read; `kubectl` and `run` outlive it.
  InterruptionLog(const Kubectl& kubectl, const RunState& state)
      : kubectl_(kubectl), state_(state), kept_(state.interruptions) {}

  /// What is known of an attempt's interruption, in place of what was known before.
  void note(KeptInterruption kept);
  /// It was none: somebody had asked for the end of that attempt.
  void drop(std::int64_t attempt);
  /// What it cost is known now.
  void settle(const InterruptionRecord& record);
  /// What a cluster that was away has not got yet.
  void flush();
  /// How those attempts ended that were watched by others and count still: of attempts from
  /// state.counted_from to before `first_attempt`.
  std::vector<KeptInterruption> counted(std::int64_t first_attempt) const;

 private:
  KeptInterruption* find(std::int64_t attempt);
  void write();

  const Kubectl& kubectl_;
  const RunState& state_;
  std::vector<KeptInterruption> kept_;
  bool unwritten_ = false, failed_ = false;
  std::chrono::steady_clock::time_point written_{};
};

/// For the rules by which a job is given up.
EarlierEnd earlier_end(const KeptInterruption& kept);

}  // namespace reckon::kubernetes
