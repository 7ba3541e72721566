#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "executor/train/checkpoint/node_directory.h"
#include "executor/train/checkpoint/recovery.h"
#include "executor/train/recipe/recipe.h"
#include "executor/worker/session.h"
#include "sim/base/standard_streams.h"
#include "sim/base/unit_text.h"
#include "sim/cluster/never.h"
#include "sim/cluster/save_interval.h"

// What a session restores and saves, and what it records of that.
namespace reckon::worker {
namespace {

using Clock = std::chrono::steady_clock;

/// How the state of a job is cut over its ranks: of the same text, the same slices.
std::string cut_text(const PlannedWorkload& job) {
  const Layout l = layout_of(job);
  return fmt::format("data {} tensor {} pipeline {} context {} expert {} zero {} {} {} {} {}",
                     l.data, l.tensor, l.pipeline, l.context, l.expert, l.zero_stage,
                     to_text(l.schedule), l.interleave, l.sequence_parallel,
                     fmt::join(job.stage_blocks, ","));
}

}  // namespace

/// Where --node-dir names no place a run on this machine plays the nodes, each with a directory.
void Session::open_nodes() {
  const PlannedLocalCheckpoint& local = *job_.checkpoint.local;
  const int each = ranks_of_node(plan_);
  std::filesystem::path directory = options_.node_directory;
  if (directory.empty())
    directory = node_directory(options_.out, local.to, communicator_.rank() / each);
  make_node_directory(directory, local.to);
  // Where nobody tells it, each process has a start of its own.
  std::int64_t started = clock_.started().time_since_epoch() / std::chrono::milliseconds(1);
  communicator_.broadcast(std::as_writable_bytes(std::span(&started, 1)), 0);
  CheckpointIdentity identity =
      identity_of_job(plan_, data_of(options_, job_.data), &trainer_.data());
  identity.ranks = communicator_.size();  // an elastic job may have fewer than the plan
  nodes_.emplace(NodeCheckpointOptions{.directory = std::move(directory),
                                       .identity = std::move(identity),
                                       .mark = fmt::format("{} {}", started, cut_text(job_)),
                                       .attempt = environment_.attempt,
                                       .ranks_per_node = each,
                                       .replicas = local.replicas,
                                       .accept_changes = options_.accept_changes},
                 communicator_);
}

/// Steps of the newest complete set, as far as its manifest says; 0: there is none.
std::int64_t Session::newest_in_storage() const {
  std::int64_t newest = 0;
  if (communicator_.rank() == 0)
    for (const CheckpointSet& set : list_sets(directory_.checkpoints()))
      if (set.complete) newest = std::max(newest, set.step);
  communicator_.broadcast(std::as_writable_bytes(std::span(&newest, 1)), 0);
  return newest;
}

/// What the nodes hold is as new as what the storage holds, or newer.
bool Session::restore_from_nodes() {
  const auto begin = Clock::now();
  const std::optional<std::int64_t> step = nodes_->recover(newest_in_storage());
  if (step) {
    const auto targets = trainer_.restore(*step);
    count_updates(nodes_->load(*step, targets));
    record_restore(*step, targets, begin);
  }
  nodes_->go_on_from(step);
  return step.has_value();
}

/// The storage has all of the work.
void Session::leave_nodes() {
  nodes_->clear();
  if (!options_.node_directory.empty()) return;
  std::error_code ignored;  // not empty: another rank's node is not left yet
  std::filesystem::remove(node_directory(options_.out, job_.checkpoint.local->to, 0).parent_path(),
                          ignored);
}

void Session::restore() {
  const auto report = [this] { progress_.report({.phase = ProgressPhase::restoring}); };
  report();
  if (nodes_ && restore_from_nodes()) return;
  const auto begin = Clock::now();
  const auto recover = [this](const std::function<void()>& got_on) {
    const Recovery recovery = checkpoints_->recover(got_on);
    changes_ = recovery.changes;
    for (const std::string& why : recovery.refused)
      print_error(fmt::format("reckon-worker: warning: {}\n", why));
    if (!changes_.empty())
      print_error(fmt::format("reckon-worker: warning: settings changed behind step {}:\n{}",
                              *recovery.step, to_text(changes_)));
    return recovery.step;
  };
  const std::optional<std::int64_t> step = recovered_step(communicator_, recover, report);
  if (!step) return;
  const auto targets = trainer_.restore(*step);
  // Where the first rank alone has a checkpoint the servers tell the others the parameters.
  const Counters counters = checkpoints_ ? checkpoints_->load(*step, targets) : Counters{};
  count_updates(counters);
  if (!waits_for_nobody()) return record_restore(*step, targets, begin);
  std::vector<std::int64_t> steps(static_cast<std::size_t>(communicator_.size()), *step);
  const auto each = static_cast<std::size_t>(ranks_of_worker(job_.strategy));
  for (std::size_t rank = each; rank < steps.size(); ++rank)
    if (const auto own = counters.find(steps_counter(rank / each)); own != counters.end())
      steps[rank] = own->second;
  communicator_.broadcast(std::as_writable_bytes(std::span(steps)), 0);
  if (communicator_.rank() == 0) return record_restore(*step, targets, begin);
  trainer_.go_on_from(steps[static_cast<std::size_t>(communicator_.rank())]);
}

/// Of a rank's part in a checkpoint.
Counters Session::counters_of_step() const {
  Counters counters{{"step", trainer_.steps_done()}};
  if (trainer_.optimizer_began() > 0) counters[kOptimizerBegan] = trainer_.optimizer_began();
  return counters;
}

/// Another optimizer begins with a state of zero: so does its count. Where it does not, AdamW's
/// k-th update of a constant gradient is (1 - 0.9^k) / sqrt(1 - 0.999^k) times the rate [Kingma and
/// Ba 2015, arXiv:1412.6980, Algorithm 1], 6.6 at most (k = 12).
void Session::count_updates(const Counters& restored) {
  if (const auto began = restored.find(kOptimizerBegan); began != restored.end())
    trainer_.set_optimizer_began(began->second);
  if (!restored.contains(kOptimizerBegins)) return;
  if (!with_servers()) return trainer_.begin_optimizer();
  print_error(
      "reckon-worker: warning: the optimizer's state begins at zero, but servers count its updates "
      "from the first step: AdamW's next ones are up to 6.6 times as large; lower its learning "
      "rate "
      "for some steps\n");
}

void Session::record_restore(std::int64_t step, std::span<const RestoreTensor> targets,
                             Clock::time_point begin) {
  if (communicator_.rank() != 0) return;
  Bytes size{};
  for (const RestoreTensor& tensor : targets)
    size += Bytes{static_cast<double>(tensor.bytes.size())};
  const Seconds time = Clock::now() - begin;
  keep(CheckpointRecord{.attempt = environment_.attempt,
                        .action = CheckpointAction::restore,
                        .step = step,
                        .at = clock_.now(),
                        .seconds = time,
                        .blocked = time,
                        .size = size});
}

/// Whether `done` steps are to be saved in the storage.
bool Session::is_due(std::int64_t done) const {
  // A rank that the others went on without may skip the very step.
  if (const auto every = options_.checkpoint_steps) return done / *every > saved_steps_ / *every;
  if (!nodes_) return Clock::now() - saved_ >= interval_;
  const SimDuration interval = clock_or_never(interval_);
  return Clock::now() - saved_ >=
         interval_of_storage(interval, clock_or_never(job_.checkpoint.local->every))
             .value_or(interval);
}

bool Session::is_due_on_nodes() const {
  if (!nodes_ || nodes_->is_saving()) return false;
  const SimDuration every = clock_or_never(job_.checkpoint.local->every);
  return interval_of_storage(clock_or_never(interval_), every) &&
         Clock::now() - saved_on_nodes_ >= every;
}

void Session::save_on_nodes() {
  report_saving();
  nodes_->save(trainer_.steps_done(), counters_of_step(), trainer_.state());
  saved_on_nodes_ = Clock::now();
}

/// In lockstep, and in this start.
bool Session::is_saved() const {
  return in_lockstep() && saved_here_ && saved_steps_ == trainer_.steps_done();
}

void Session::save(bool emergency) {
  report_saving();
  Counters counters = counters_of_step();
  if (waits_for_nobody()) {
    // First how far the others are, then the values: every step that is counted is in them.
    const auto workers = exchange_.progress();
    for (std::size_t worker = 1; worker < workers.size(); ++worker)
      counters[steps_counter(worker)] = workers[worker].steps_done;
    exchange_.take_final_values();
  }
  checkpoints_->save(trainer_.steps_done(), std::move(counters), trainer_.state(), emergency);
  planned_save_ = !emergency;
  saved_ = Clock::now();
  saved_steps_ = trainer_.steps_done();
  saved_here_ = true;
}

/// As a part of the step that was done: who saves is behind those that have begun the next.
void Session::report_saving() {
  progress_.report({.step = std::max<std::int64_t>(0, trainer_.steps_done() - 1),
                    .phase = ProgressPhase::saving});
}

/// Where a run leaves its plan, it says so.
void Session::amend_interval(const SaveReport& save) {
  const auto amended = amended_save_interval(plan_, job_, interval_, save.blocked);
  if (!amended) return;
  if (communicator_.rank() == 0)
    keep(ChangeRecord{.attempt = environment_.attempt,
                      .step = save.step,
                      .at = clock_.now(),
                      .name = "checkpoint_interval",
                      .recorded = format_duration(interval_),
                      .value = format_duration(*amended)});
  interval_ = *amended;
}

void Session::record_saves() {
  for (const SaveReport& save : checkpoints_->take_reports()) {
    amend_interval(save);
    if (communicator_.rank() != 0) continue;
    keep(CheckpointRecord{.attempt = environment_.attempt,
                          .action = CheckpointAction::save,
                          .emergency = save.emergency,
                          .step = save.step,
                          .at = clock_.at(save.begin) + save.blocked + save.write,
                          .seconds = save.blocked + save.write,
                          .blocked = save.blocked,
                          .size = save.size});
  }
}

}  // namespace reckon::worker
