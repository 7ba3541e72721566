#include "executor/launch/local/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "executor/comm/rendezvous/job_secret.h"
#include "executor/launch/foreign_job.h"
#include "executor/launch/foreign_program.h"
#include "executor/launch/local/job.h"
#include "executor/launch/local/metrics.h"
#include "executor/launch/rank_kinds.h"
#include "executor/launch/run_files.h"
#include "executor/launch/run_money.h"
#include "executor/launch/standing_processes.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/recipe.h"
#include "executor/train/stop_signal.h"
#include "sim/base/check.h"
#include "sim/base/unit_text.h"
#include "sim/measurement/slow_ranks.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

class LocalRun {
 public:
  LocalRun(const Plan& plan, const Forecast& forecast, const LocalRunOptions& options,
           const RunObserver& observer)
      : plan_(plan),
        options_(options),
        observer_(observer),
        files_({.directory = options.directory,
                .earlier = options.resume ? Earlier::needed : Earlier::refused,
                .processes = processes() + spare_processes(plan),
                .steps = job().steps,
                .leaves_weights = !options.foreign,
                .digest = options.digests.run,
                .plan = options.plan,
                .forecast_text = options.forecast_text}),
        tracker_(forecast, job().steps, options.deadline),
        slow_ranks_(kinds_of_ranks(plan, job())) {
    if (options.foreign)
      foreign_.emplace(plan, options.foreign->progress, files_.before().clock, options.digests);
    else if (processes() > 1)
      job_.secret = secret_.emplace(options.directory.secret()).path();
    if (!options.foreign && job().restart && job().restart->kind != RestartKind::full)
      standing_.emplace(job(), spare_processes(plan));
    job_.worker = options.worker;
    job_.arguments = options.arguments;
    job_.clock = files_.before().clock;
    job_.lock = files_.lock();
    const EarlierPart& before = files_.before();
    tracker_.take_up(before.steps, before.checkpoints, before.interruptions, before.of_this_plan);
    if (forecast.rates) {
      money_.emplace(*forecast.rates, before, options.budget, checkpoint_save_time(plan, job()));
      tracker_.count_money(money_->spending(), money_->budget());
    }
    if (!files_.before().damage.empty()) say(files_.before().damage);
  }

  RunEnd run(const std::function<StopRequest()>& stop) {
    if (const auto& finished = files_.before().finished) return as_it_ended(*finished);
    const Seconds starts = plan_.job_start.framework_start.value;
    if (money_ && money_->passes(job_.clock.now() + starts, tracker_.longest_step()))
      return out_of_money({.ran = false});
    const auto asked = [&] { return request(stop); };
    SuperviseOptions how;
    how.retry = options_.retry;
    how.first_attempt = files_.before().attempt;
    how.checkpoint = [this] { return newest_checkpoint(); };
    how.gang = [this](std::int64_t attempt) { return gang(attempt); };
    if (foreign_) how.run = [&](std::int64_t attempt) { return run_foreign(attempt, asked); };
    SuperviseEvents events;
    events.starting = [this](std::int64_t attempt) { on_start(attempt); };
    events.interrupted = [this](std::int64_t attempt, const GangEnd& end, Seconds delay) {
      on_interruption(attempt, end, delay);
    };
    events.gang.output = [this](int member, std::string_view line) { on_output(member, line); };
    events.gang.progress = [this](int member, const ProgressReport& r) { on_progress(member, r); };
    events.gang.tick = [this] { show(); };
    RunEnd end;
    end.end = supervise(how, events, asked);
    explain_stop(end);
    record_end(end.end);
    end.status = tracker_.at(job_.clock.now());
    end.checkpoint = newest_checkpoint();
    return end;
  }

 private:
  RunEnd as_it_ended(const EndRecord& finished) {
    RunEnd end;
    end.ran = false;
    end.status = tracker_.at(finished.at);
    end.checkpoint = newest_checkpoint();
    return end;
  }

  // ---- its end before the last step

  StopRequest request(const std::function<StopRequest()>& stop) {
    const StopRequest asked = stop ? stop() : StopRequest::none;
    return money_ ? money_->request(asked, job_.clock.now(), tracker_.longest_step()) : asked;
  }

  RunEnd out_of_money(RunEnd end) {
    const Seconds now = job_.clock.now();
    end.budget_spent = true;
    end.end = {Verdict::stopped, kExitBudgetSpent,
               end.ran ? money_->reason(now) : money_->reason_not_to_start(), end.end.attempts};
    end.status = tracker_.at(now);
    end.checkpoint = newest_checkpoint();
    return end;
  }

  /// Nobody but the user says by himself why.
  void explain_stop(RunEnd& end) {
    if (end.end.verdict != Verdict::stopped) return;
    if (money_ && money_->is_out()) end = out_of_money(std::move(end));
    if (end.budget_spent || !options_.stop_reason) return;
    if (std::string why = options_.stop_reason(); !why.empty()) end.end.reason = std::move(why);
  }

  void on_save(Seconds blocked, Seconds took) {
    tracker_.saved(blocked);
    if (money_) money_->saved(took);
  }

  // ---- its processes

  const PlannedWorkload& job() const { return plan_.only_job(); }
  int processes() const {
    const PlannedStrategy& s =
        job().strategy;  // a program of one's own places its variables itself
    return options_.foreign ? s.workers + s.server_count()
                            : computing_ranks(s) + server_processes(s);
  }

  GangOptions gang(std::int64_t attempt) {
    GangOptions g;
    if (standing_) {
      g = standing_->seat(job_, attempt);
    } else {
      g.rendezvous = local_rendezvous();
      g.members = processes_of(job().strategy, job_, attempt, g.rendezvous);
    }
    g.progress_deadline = options_.progress_deadline;
    g.start_deadline = options_.start_deadline;
    g.notice = options_.notice;
    // Who stays notices the loss by itself, perhaps only when a third has left the mesh.
    constexpr Seconds kToNotice{20};
    g.grace = standing_ ? std::max(options_.grace, kToNotice) : options_.grace;
    return g;
  }

  // ---- a program that is not ours

  GangEnd run_foreign(std::int64_t attempt, const std::function<StopRequest()>& stop) {
    foreign_->begin(attempt, job_.clock.now());
    GangOptions g;
    g.members = processes_of(
        job(), options_.foreign->container,
        {.directory = options_.directory.root / "job", .attempt = attempt, .clock = job_.clock});
    g.notice = options_.notice;
    g.grace = options_.grace;
    g.foreign = true;
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
  void explain(GangEnd& end) {
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

  void hear(const ForeignProgram::Records& records) {
    for (const MeasurementRecord& record : records) {
      files_.measurements().append(record);
      if (const auto* run = std::get_if<RunRecord>(&record)) on_resumed(run->first_step);
      if (const auto* saved = std::get_if<CheckpointRecord>(&record)) {
        saved_ = saved->step;
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

  void on_resumed(std::int64_t first_step) {
    tracker_.go_on_from(first_step);
    const auto settled = interruption_.settle(first_step);
    if (!settled) return;
    files_.measurements().append(*settled);
    say(fmt::format("it goes on from step {}; {} steps are done again", first_step,
                    settled->lost_steps));
  }

  /// Where it goes on is its own affair.
  void on_open_interruption(InterruptionRecord r, Seconds delay) {
    say(fmt::format("{}: restarting in {}", r.detail, format_duration(delay)));
    const std::int64_t done = tracker_.steps_done();
    const Seconds step = tracker_.interrupted(0, 1);
    if (const auto at_once = interruption_.open(std::move(r), done, step))
      files_.measurements().append(*at_once);
  }

  // ---- both

  void on_start(std::int64_t attempt) {
    tracker_.begin_attempt(attempt);
    slow_ranks_.begin();
    done_ = saved_steps();
  }

  void on_output(int member, std::string_view line) {
    if (const auto trouble = files_.line(member, line)) say(*trouble);
    const bool beside = standing_ && member >= standing_->seats();
    if (observer_.output)
      observer_.output(beside ? "stands by" : fmt::format("rank {}", member), line);
  }

  /// An elastic job is as large as it can be: who stands by and is ready joins.
  void grow() {
    if (!standing_->could_grow()) return;
    standing_->regroup();
    say("a process is ready to join: the ranks regroup behind the step");
  }

  void on_progress(int member, const ProgressReport& r) {
    if (standing_ && member >= standing_->seats()) return grow();
    const bool done = r.phase == ProgressPhase::done;
    if (done && member < computing_ranks(job().strategy)) done_[std::size_t(member)] = r.step + 1;
    if (done && r.own) look_for_slow(member, *r.own);
    if (member != 0) return;
    tracker_.set_phase(to_text(r.phase));
    if (!done) return;
    tracker_.step_done(r.step, r.seconds, r.samples, r.loss);
    if (r.saved) on_save(*r.saved, *r.saved);
  }

  void look_for_slow(int member, Seconds own) {
    for (const SlowRank& slow : slow_ranks_.add(member, own))
      say(fmt::format("rank {} is slow: it {}", slow.rank,
                      to_text(slow, slow_ranks_.others_like(slow.rank))));
  }

  /// Steps that are done and not in a checkpoint are to be done again.
  void on_interruption(std::int64_t attempt, const GangEnd& end, Seconds delay) {
    InterruptionRecord r;
    r.attempt = attempt;
    r.cause = cause_of(end);
    r.rank = end.culprit;
    r.at = job_.clock.now();
    if (r.cause == Interruption::preemption) r.notice = options_.notice;
    r.detail = end.reason;
    if (foreign_ && !newest_checkpoint()) return on_open_interruption(std::move(r), delay);
    const std::int64_t of_first = std::max<std::int64_t>(0, tracker_.steps_done() - goes_on_from());
    const double lost = waits_for_nobody() ? lost_by_all() : double(of_first);
    r.lost_steps = std::llround(lost);
    r.lost_work = tracker_.interrupted(of_first, lost);
    files_.measurements().append(r);
    say(fmt::format("{}: {} steps lost, restarting in {}", end.reason, r.lost_steps,
                    format_duration(delay)));
  }

  /// The step from which the next start goes on: those who wait may hold a later state than the
  /// newest checkpoint has.
  std::int64_t goes_on_from() const {
    const std::int64_t saved = newest_checkpoint().value_or(0);
    return standing_ ? std::max(saved, standing_->held_steps()) : saved;
  }

  std::optional<std::int64_t> newest_checkpoint() const {
    if (foreign_) return saved_ ? saved_ : files_.before().checkpoint;
    for (const CheckpointSet& set : list_sets(options_.directory.checkpoints()))
      if (set.complete) return set.step;
    return std::nullopt;
  }

  bool waits_for_nobody() const { return !foreign_ && !job().strategy.synchronous(); }

  /// By rank: how many of its steps the newest checkpoint holds. Of workers that take steps of
  /// their own rank 0's part says it.
  std::vector<std::int64_t> saved_steps() const {
    std::vector<std::int64_t> saved(std::size_t(computing_ranks(job().strategy)));
    for (const CheckpointSet& set : list_sets(options_.directory.checkpoints())) {
      if (!set.complete) continue;
      saved.assign(saved.size(), set.step);
      if (!waits_for_nobody()) break;
      try {
        const Counters counters = read_shard_header(shard_file(set.directory, 0)).counters;
        const auto each = std::size_t(ranks_of_worker(job().strategy));
        for (std::size_t rank = each; rank < saved.size(); ++rank)
          if (const auto own = counters.find(steps_counter(rank / each)); own != counters.end())
            saved[rank] = own->second;
      } catch (const std::runtime_error&) {
        // Damaged: the workers will find that out, and say what they do.
      }
      break;
    }
    return saved;
  }

  /// Steps of the job: the mean over the workers, each of which takes all of them.
  double lost_by_all() const {
    const std::vector<std::int64_t> saved = saved_steps();
    double lost = 0;
    for (std::size_t rank = 0; rank < saved.size(); ++rank)
      lost += double(std::max<std::int64_t>(0, done_[rank] - saved[rank]));
    return lost / double(saved.size());
  }

  void record_end(const SupervisedEnd& end) {
    if (const auto open = interruption_.give_up()) files_.measurements().append(*open);
    EndRecord r;
    r.attempt = tracker_.attempt();
    r.finished = end.verdict == Verdict::finished;
    r.at = job_.clock.now();
    r.steps_done = tracker_.steps_done();
    r.detail = end.reason;
    if (money_) r.spent = to_usd(money_->spending().at(r.at)).v;
    files_.measurements().append(r);
  }

  void show() {
    if (!observer_.status) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = now;
    observer_.status(tracker_.at(job_.clock.now()));
  }

  void say(const std::string& text) const {
    if (observer_.message) observer_.message(text);
  }

  const Plan& plan_;
  const LocalRunOptions& options_;
  const RunObserver& observer_;
  RunFiles files_;
  /// Behind the lock of files_: an earlier start's is of no use to anybody any more.
  std::optional<JobSecretFile> secret_;
  RunTracker tracker_;
  SlowRanks slow_ranks_;
  std::optional<RunMoney> money_;  // nullopt: a price is unknown
  LocalJob job_;
  std::vector<std::int64_t> done_;             // by rank: its steps
  std::optional<ForeignProgram> foreign_;      // nullopt: reckon-worker
  std::optional<std::int64_t> saved_;          // as that program told
  std::optional<StandingProcesses> standing_;  // nullopt: all start again
  OpenInterruption interruption_;
  FruitlessStarts fruitless_;
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace

RunEnd run_locally(const Plan& plan, const Forecast& forecast, const LocalRunOptions& options,
                   const RunObserver& observer, const std::function<StopRequest()>& stop) {
  RECKON_CHECK(forecast.feasible && plan.jobs.size() == 1);
  return LocalRun(plan, forecast, options, observer).run(stop);
}

}  // namespace reckon
