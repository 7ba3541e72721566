#include "sim/measurement/run/pauses.h"

#include <algorithm>

namespace reckon {
namespace {

struct Pause {
  Seconds begin{}, end{};
};

/// In order; they do not overlap.
std::vector<Pause> pauses_of(const Measurements& m) {
  std::vector<Pause> pauses;
  Seconds counted{};  // up to where pauses are in `pauses`
  for (const EndRecord& end : m.ends) {
    const auto next = std::ranges::find_if(
        m.runs, [&](const RunRecord& run) { return run.attempt > end.attempt; });
    if (next == m.runs.end()) continue;
    const Seconds begin = std::max(end.at, counted);
    counted = std::max(counted, std::min(next->at, m.ends.back().at));
    if (counted > begin) pauses.push_back({begin, counted});
  }
  return pauses;
}

Seconds paused_before(const std::vector<Pause>& pauses, Seconds at) {
  Seconds paused{};
  for (const Pause& p : pauses) paused += std::max(Seconds{0}, std::min(p.end, at) - p.begin);
  return paused;
}

}  // namespace

Seconds time_running(const Measurements& measurements) {
  if (measurements.ends.empty()) return {};
  return measurements.ends.back().at - time_paused(measurements);
}

Seconds time_paused(const Measurements& measurements) {
  return paused_before(pauses_of(measurements), Seconds::max());
}

Measurements without_pauses(Measurements m) {
  const std::vector<Pause> pauses = pauses_of(m);
  if (pauses.empty()) return m;
  const auto move = [&](Seconds& at) { at -= paused_before(pauses, at); };
  const auto move_clock = [&](SimTime& at) {
    at -= to_clock(paused_before(pauses, to_seconds(at - SimTime{})));
  };
  const auto move_all = [&](auto& records) {
    for (auto& record : records) move(record.at);
  };
  move_all(m.runs), move_all(m.steps), move_all(m.interruptions), move_all(m.checkpoints);
  move_all(m.provisioning), move_all(m.ends), move_all(m.changes), move_all(m.decisions);
  move_all(m.evaluations);
  for (Span& s : m.timeline.spans) move_clock(s.begin), move_clock(s.end);
  for (Mark& k : m.timeline.marks) move_clock(k.at);
  return m;
}

}  // namespace reckon
