#include <fmt/format.h>

#include <array>

#include "executor/train/stop_signal.h"
#include "executor/worker/session.h"
#include "sim/base/standard_streams.h"

// What a session does in and behind an evaluation.
namespace reckon::worker {

/// Parts take a second or so: then who is told to stop, or to regroup, does.
EvaluationWord Session::between_parts(Seconds part) {
  constexpr Seconds kPart{1};
  const auto flag = [](bool set) { return set ? 1.0 : 0.0; };
  Communicator* together = in_lockstep() ? &communicator_ : of_worker_;
  const bool first = together == nullptr || together->rank() == 0;
  const bool told = in_lockstep() && first && orders_ && orders_->told_to_regroup();
  std::array<double, 3> sum{flag(stop_requested()), flag(told), flag(first && part < kPart)};
  if (together != nullptr) together->all_reduce(std::span<double>(sum));
  if (sum[0] + sum[1] > 0) {
    if (in_lockstep() && trainer_.steps_done() < steps_) {
      stopped_ = sum[0] > 0;
      regroups_ = !stopped_;
      save_due_ = regroups_ && saves_to_regroup_;
    }
    return EvaluationWord::leave;
  }
  return sum[2] > 0 ? EvaluationWord::longer : EvaluationWord::goes_on;
}

/// Where ranks go in step the loss is that of all samples; else every worker has its own.
void Session::take(EvaluationMeasurement m) {
  if (m.input && m.input->skipped > 0) report_skipped(*m.input);
  const bool together = in_lockstep();
  if (together) {
    const auto begin = std::chrono::steady_clock::now();
    communicator_.all_reduce(std::span<double>(&m.loss, 1));
    m.loss /= communicator_.size();
    m.samples = m.samples_of_all;
    m.seconds += std::chrono::steady_clock::now() - begin;
  }
  if (together && communicator_.rank() > 0) return;
  if (keeps_records())
    keep(EvaluationRecord{.attempt = environment_.attempt,
                          .rank = communicator_.rank(),
                          .step = m.steps_done,
                          .at = clock_.now(),
                          .seconds = m.seconds,
                          .samples = m.samples,
                          .loss = m.loss});
  print(fmt::format("evaluation after {} steps: loss {:.4f} of {} samples, {:.3f}s\n", m.steps_done,
                    m.loss, m.samples, m.seconds.count()));
}

}  // namespace reckon::worker
