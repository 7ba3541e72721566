#include <catch2/catch.hpp>

#include "sim/measurement/run/timeline.h"

namespace reckon {
namespace {

void add_step(Measurements& m, std::int64_t attempt, std::int64_t step, double end,
              double seconds) {
  StepRecord s;
  s.attempt = attempt;
  s.step = step;
  s.at = Seconds{end};
  s.seconds = Seconds{seconds};
  m.steps.push_back(s);
}

CheckpointRecord checkpoint(std::int64_t attempt, CheckpointAction action, double end,
                            double seconds, double blocked, bool emergency = false) {
  CheckpointRecord c;
  c.attempt = attempt;
  c.action = action;
  c.at = Seconds{end};
  c.seconds = Seconds{seconds};
  c.blocked = Seconds{blocked};
  c.emergency = emergency;
  return c;
}

std::string text_of(const Timeline& timeline) {
  std::string text;
  for (const Span& s : timeline.spans)
    text += s.name + ' ' + std::to_string((s.begin - SimTime{}).count() / 1'000'000) + ".." +
            std::to_string((s.end - SimTime{}).count() / 1'000'000) + ' ' + s.category + '\n';
  for (const Mark& k : timeline.marks)
    text += k.name + ' ' + std::to_string((k.at - SimTime{}).count() / 1'000'000) + '\n';
  return text;
}

TEST_CASE("a run with a save and a killed attempt is told in the simulator's words") {
  Measurements m;
  RunRecord run;
  m.runs.push_back(run);
  add_step(m, 0, 0, 3, 1);
  add_step(m, 0, 1, 4, 1);
  // The save begins at 4.0, blocks training for half a second, and is on the device at 5.2.
  m.checkpoints.push_back(checkpoint(0, CheckpointAction::save, 5.2, 1.2, 0.5));
  add_step(m, 0, 2, 5.5, 1);
  InterruptionRecord killed;
  killed.rank = 3;
  killed.at = Seconds{6};
  m.interruptions.push_back(killed);
  run.attempt = 1;
  run.at = Seconds{16};
  m.runs.push_back(run);
  m.checkpoints.push_back(checkpoint(1, CheckpointAction::restore, 18, 0.5, 0.5));
  add_step(m, 1, 2, 19, 1);
  m.checkpoints.push_back(checkpoint(1, CheckpointAction::save, 21, 2, 0.1, true));
  CHECK(text_of(timeline_of(m)) ==
        "initialize 0..2000 initialization\n"
        "training 2000..4000 goodput\n"
        "save 4000..4500 checkpoint_save\n"
        "training 4500..5500 goodput\n"
        "backoff 6000..16000 waiting\n"
        "initialize 16000..17500 initialization\n"
        "restore 17500..18000 checkpoint_restore\n"
        "training 18000..19000 goodput\n"
        "emergency save 19000..21000 checkpoint_save\n"
        "failure 6000\n");
}

TEST_CASE("spans and marks of the job are the job's, whichever rank was lost") {
  Measurements m;
  m.runs.emplace_back();
  InterruptionRecord killed;
  killed.rank = 3;  // a node of the job's own row would be read as the fourth job
  killed.at = Seconds{4};
  m.interruptions.push_back(killed);
  const Timeline timeline = timeline_of(m);
  REQUIRE(timeline.marks.size() == 1);
  CHECK(timeline.marks[0].pool == -1);
  CHECK(timeline.marks[0].node == -1);
}

TEST_CASE("an attempt that did not come to its first step was starting all the time") {
  Measurements m;
  m.runs.emplace_back();
  InterruptionRecord killed;
  killed.at = Seconds{4};
  m.interruptions.push_back(killed);
  CHECK(text_of(timeline_of(m)) == "initialize 0..4000 initialization\nfailure 4000\n");
  CHECK(timeline_of({}).spans.empty());
}

}  // namespace
}  // namespace reckon
