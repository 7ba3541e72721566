#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "executor/launch/local/local_run.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/node_directory.h"
#include "executor/train/recipe/recipe.h"
#include "sim/base/unit_text.h"

namespace reckon {

void LocalRun::on_save(Seconds blocked, Seconds took) {
  tracker_.saved(blocked);
  if (money_) money_->saved(took);
}

void LocalRun::on_start(std::int64_t attempt) {
  tracker_.begin_attempt(attempt);
  slow_ranks_.begin();
  done_ = saved_steps();
}

void LocalRun::on_output(int member, std::string_view line) {
  if (const auto trouble = files_.line(member, line)) say(*trouble);
  const bool beside = standing_ && member >= standing_->seats();
  if (observer_.output)
    observer_.output(beside ? "stands by" : fmt::format("rank {}", member), line);
}

/// An elastic job is as large as it can be: who stands by and is ready joins.
void LocalRun::grow() {
  if (!standing_->could_grow()) return;
  standing_->regroup();
  say("a process is ready to join: the ranks regroup behind the step");
}

void LocalRun::on_progress(int member, const ProgressReport& r) {
  if (standing_ && member >= standing_->seats()) return grow();
  const bool done = r.phase == ProgressPhase::done;
  if (done && member < computing_ranks(job().strategy)) done_[std::size_t(member)] = r.step + 1;
  if (done && r.own) look_for_slow(member, r.step, *r.own);
  if (member != 0) return;
  tracker_.set_phase(to_text(r.phase));
  if (!done) return;
  tracker_.step_done(r.step, r.seconds, r.samples, r.loss);
  if (r.saved) on_save(*r.saved, *r.saved);
}

void LocalRun::look_for_slow(int member, std::int64_t step, Seconds own) {
  const double at = waits_for_nobody() ? job_.clock.now().count() : double(step);
  for (const SlowRank& slow : slow_ranks_.add(member, at, own))
    say(fmt::format("rank {} is slow: it {}", slow.rank, to_text(slow)));
}

/// Steps that are done and not in a checkpoint are to be done again.
void LocalRun::on_interruption(std::int64_t attempt, const GangEnd& end, Seconds delay) {
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

/// The step from which the next start goes on: those who wait, and the nodes, may hold a later
/// state than the newest checkpoint in the storage has.
std::int64_t LocalRun::goes_on_from() const {
  const std::int64_t saved = newest_saved().value_or(0);
  return standing_ ? std::max(saved, standing_->held_steps()) : saved;
}

/// In the storage or on the nodes. An elastic job may go on with other ranks than those whose parts
/// its nodes have.
std::optional<std::int64_t> LocalRun::newest_saved() const {
  const auto stored = newest_checkpoint();
  if (foreign_ || (job().restart && job().restart->kind == RestartKind::elastic)) return stored;
  return std::max(stored,
                  newest_on_nodes(plan_, options_.directory.root, computing_ranks(job().strategy)));
}

std::optional<std::int64_t> LocalRun::newest_checkpoint() const {
  if (foreign_) return saved_ ? saved_ : files_.before().checkpoint;
  for (const CheckpointSet& set : list_sets(options_.directory.checkpoints()))
    if (set.complete) return set.step;
  return std::nullopt;
}

bool LocalRun::waits_for_nobody() const { return !foreign_ && !job().strategy.synchronous(); }

/// By rank: how many of its steps the newest checkpoint holds. Of workers that take steps of
/// their own rank 0's part says it.
std::vector<std::int64_t> LocalRun::saved_steps() const {
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
double LocalRun::lost_by_all() const {
  const std::vector<std::int64_t> saved = saved_steps();
  double lost = 0;
  for (std::size_t rank = 0; rank < saved.size(); ++rank)
    lost += double(std::max<std::int64_t>(0, done_[rank] - saved[rank]));
  return lost / double(saved.size());
}

}  // namespace reckon
