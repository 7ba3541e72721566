#include "sim/measurement/run/timeline.h"

#include <algorithm>
#include <string>

namespace reckon {
namespace {

struct Piece {
  const char* name;
  std::string_view category;
  Seconds begin{}, end{};
};

SimTime clock_of(Seconds at) { return SimTime{to_clock(at)}; }

/// Measured steps, evaluations and checkpoints of one attempt, in order of their begin.
std::vector<Piece> pieces_of(const Measurements& m, std::int64_t attempt) {
  std::vector<Piece> pieces;
  for (const StepRecord& s : m.steps)
    if (s.attempt == attempt && s.rank == 0)
      pieces.push_back({"training", "goodput", s.at - s.seconds, s.at});
  for (const EvaluationRecord& e : m.evaluations)
    if (e.attempt == attempt && e.rank == 0)
      pieces.push_back({"evaluation", "goodput", e.at - e.seconds, e.at});
  for (const CheckpointRecord& c : m.checkpoints) {
    if (c.attempt != attempt) continue;
    const bool restore = c.action == CheckpointAction::restore;
    const Seconds begin = c.at - c.seconds;
    // An emergency save is waited for; others go on while training does, but for the copy.
    const Seconds end = restore || c.emergency ? c.at : begin + c.blocked;
    pieces.push_back({restore       ? "restore"
                      : c.emergency ? "emergency save"
                                    : "save",
                      to_text(restore ? Badput::checkpoint_restore : Badput::checkpoint_save),
                      begin, end});
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  return pieces;
}

class TimelineOfJob {
 public:
  explicit TimelineOfJob(const Measurements& m) : m_(m) {}

  Timeline make() {
    for (std::size_t k = 0; k < m_.runs.size(); ++k) add_attempt(m_.runs[k], k > 0);
    for (const InterruptionRecord& i : m_.interruptions)
      timeline_.marks.push_back({std::string(to_text(i.cause)), -1, -1, clock_of(i.at)});
    timeline_.spans.insert(timeline_.spans.end(), m_.timeline.spans.begin(),
                           m_.timeline.spans.end());
    timeline_.marks.insert(timeline_.marks.end(), m_.timeline.marks.begin(),
                           m_.timeline.marks.end());
    return std::move(timeline_);
  }

 private:
  void add_attempt(const RunRecord& run, bool again) {
    // Where nothing says how long nodes were waited for, it is until the first processes start.
    if (again)
      add({"backoff", to_text(Badput::waiting), at_, run.at});
    else if (m_.provisioning.empty())
      add({"provision", to_text(Badput::provisioning), at_, run.at});
    const std::vector<Piece> pieces = pieces_of(m_, run.attempt);
    const Seconds begin = pieces.empty() ? end_of(run) : pieces.front().begin;
    add({"initialize", to_text(Badput::initialization), run.at, begin});
    for (const Piece& p : pieces) add(p);
    at_ = std::max(at_, end_of(run));
  }

  /// When the attempt was over, as far as that was recorded.
  Seconds end_of(const RunRecord& run) const {
    Seconds end = std::max(at_, run.at);
    for (const InterruptionRecord& i : m_.interruptions)
      if (i.attempt == run.attempt) end = std::max(end, i.at);
    for (const EndRecord& e : m_.ends)
      if (e.attempt == run.attempt) end = std::max(end, e.at);
    return end;
  }

  /// Cuts off what an earlier piece covers; training is one span as long as nothing comes between.
  void add(Piece p) {
    p.begin = std::max(p.begin, at_);
    if (p.end <= p.begin) return;
    at_ = p.end;
    constexpr Seconds kSameMoment{0.01};  // between the end of a step and the begin of the next
    std::vector<Span>& spans = timeline_.spans;
    if (!spans.empty() && spans.back().name == p.name &&
        clock_of(p.begin) - spans.back().end < to_clock(kSameMoment)) {
      spans.back().end = clock_of(p.end);
      return;
    }
    spans.push_back({p.name, std::string(p.category), -1, -1, clock_of(p.begin), clock_of(p.end)});
  }

  const Measurements& m_;
  Timeline timeline_;
  Seconds at_{};
};

}  // namespace

Timeline timeline_of(const Measurements& measurements) {
  return TimelineOfJob(measurements).make();
}

}  // namespace reckon
