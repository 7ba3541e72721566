#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "executor/launch/local/local_run.h"
#include "executor/launch/local/metrics.h"
#include "executor/train/stop_signal.h"
#include "sim/base/unit_text.h"

namespace reckon {

GangEnd LocalRun::run_foreign(std::int64_t attempt, const std::function<StopRequest()>& stop) {
  foreign_->begin(attempt, job_.clock.now());
  steps_.begin();
  ListenedTime listened;
  GangOptions g;
  g.members = processes_of(job(), options_.foreign->container,
                           {.directory = options_.directory.root / "job",
                            .attempt = attempt,
                            .clock = job_.clock,
                            .lock = job_.lock});
  g.notice = options_.notice;
  g.grace = options_.grace;
  g.foreign = true;
  g.hangs = [this] { return steps_.hangs() ? steps_.words() : std::string(); };
  g.ends_with_first = job().strategy.server_count() > 0;
  std::unique_ptr<LocalMetrics> metrics;
  if (const auto& page = foreign_->prometheus())
    metrics = std::make_unique<LocalMetrics>(page->port, page->path);
  GangEvents events;
  events.output = [this](int member, std::string_view line) {
    on_output(member, line);
    hear(foreign_->line(member, job_.clock.now(), line));
  };
  events.tick = [&] {
    steps_.pass(listened.since_last());
    if (const auto page = metrics ? metrics->take() : std::nullopt)
      hear(foreign_->page(0, job_.clock.now(), *page));
    show();
  };
  GangEnd end = run_gang(std::move(g), events, stop);
  hear(foreign_->end());
  explain(end);
  return end;
}

/// Of its codes only 0 has a meaning, and that only where nobody asked it to stop.
void LocalRun::explain(GangEnd& end) {
  if (end.asked) {
    const bool done = end.code == 0 && tracker_.steps_done() >= job().steps;
    if (!done) end.code = kExitStoppedOnRequest;
    if (!done) end.reason = "stopped on request";
    return;
  }
  if (end.code != 0) end.cause = Interruption::failure;  // its 75 is not our workers' 75
  constexpr int kNotExecutable = 126, kNotFound = 127;
  end.unexplained = end.code != 0 && end.code != kNotExecutable && end.code != kNotFound;
  fruitless_.judge(end, foreign_->spoke());
}

void LocalRun::hear(const ForeignProgram::Records& records) {
  if (foreign_->spoke()) steps_.told(foreign_->steps_done());
  for (const MeasurementRecord& record : records) {
    files_.measurements().append(record);
    if (const auto* run = std::get_if<RunRecord>(&record)) on_resumed(run->first_step);
    if (const auto* saved = std::get_if<CheckpointRecord>(&record)) {
      saved_ = saved->step;
      steps_.lives();
      on_save(saved->blocked, saved->seconds);
    }
    const auto* step = std::get_if<StepRecord>(&record);
    if (step == nullptr) continue;
    tracker_.set_phase(to_text(ProgressPhase::computing));
    tracker_.step_done(step->step, step->seconds, step->samples, step->loss);
  }
  if (foreign_->spoke() && tracker_.at_start() && foreign_->steps_done() > tracker_.steps_done())
    tracker_.go_on_from(foreign_->steps_done());
}

void LocalRun::on_resumed(std::int64_t first_step) {
  tracker_.go_on_from(first_step);
  const auto settled = interruption_.settle(first_step);
  if (!settled) return;
  files_.measurements().append(*settled);
  say(fmt::format("it goes on from step {}; {} steps are done again", first_step,
                  settled->lost_steps));
}

/// Where it goes on is its own affair.
void LocalRun::on_open_interruption(InterruptionRecord r, Seconds delay) {
  say(fmt::format("{}: restarting in {}", r.detail, format_duration(delay)));
  const std::int64_t done = tracker_.steps_done();
  const Seconds step = tracker_.interrupted(0, 1);
  if (const auto at_once = interruption_.open(std::move(r), done, step))
    files_.measurements().append(*at_once);
}

}  // namespace reckon
