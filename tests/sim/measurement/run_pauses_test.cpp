#include "sim/measurement/run/pauses.h"

#include <catch2/catch.hpp>

#include "sim/measurement/run/timeline.h"

namespace reckon {
namespace {

RunRecord run_at(std::int64_t attempt, double at) {
  RunRecord r;
  r.attempt = attempt;
  r.at = Seconds{at};
  return r;
}

EndRecord end_at(std::int64_t attempt, double at) {
  EndRecord e;
  e.attempt = attempt;
  e.at = Seconds{at};
  return e;
}

TEST_CASE("a run does not go on between its stop and the next start") {
  Measurements m;
  CHECK(time_running(m) == Seconds{0});
  m.runs = {run_at(0, 2), run_at(1, 12)};  // between them the launcher waited
  m.ends = {end_at(1, 20)};
  CHECK(time_running(m) == Seconds{20});
  m.runs.push_back(run_at(2, 1000));
  m.ends.push_back(end_at(2, 1030));
  CHECK(time_running(m) == Seconds{50});
  // A start that ended without a process is in the pause.
  m.ends.insert(m.ends.begin() + 1, end_at(1, 500));
  CHECK(time_running(m) == Seconds{50});
  m.runs.push_back(run_at(3, 1100));  // killed before it could record an end
  m.runs.push_back(run_at(4, 1200));
  m.ends.push_back(end_at(4, 1210));
  CHECK(time_running(m) == Seconds{160});
}

TEST_CASE("without its pauses a run that was resumed has the clock of one that was not stopped") {
  Measurements m;
  m.runs = {run_at(0, 0), run_at(1, 112)};
  m.ends = {end_at(0, 12), end_at(1, 130)};
  const auto step = [&](std::int64_t attempt, double at) {
    StepRecord s;
    s.attempt = attempt;
    s.at = Seconds{at};
    s.seconds = Seconds{2};
    m.steps.push_back(s);
  };
  step(0, 10), step(1, 120);
  m.timeline.marks.push_back({"stopped", -1, -1, SimTime{to_clock(Seconds{50})}});
  CHECK(time_paused(m) == Seconds{100});
  const Measurements moved = without_pauses(m);
  CHECK(moved.runs[1].at == Seconds{12});
  CHECK(moved.steps[0].at == Seconds{10});
  CHECK(moved.steps[1].at == Seconds{20});
  CHECK(moved.steps[1].seconds == Seconds{2});
  CHECK(moved.ends.back().at == time_running(m));
  CHECK(moved.timeline.marks[0].at == SimTime{to_clock(Seconds{12})});  // within the pause
  CHECK(time_paused(moved) == Seconds{0});
  for (const Span& s : timeline_of(moved).spans) CHECK(s.category != to_text(Badput::waiting));
}

}  // namespace
}  // namespace reckon
