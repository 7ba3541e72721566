#include "executor/worker/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "executor/train/checkpoint/recovery.h"
#include "executor/train/checkpoint/tensor_reader.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/records/pod_orders.h"
#include "executor/train/stop_signal.h"
#include "sim/base/standard_streams.h"
#include "sim/base/unit_text.h"
#include "sim/cluster/save_interval.h"
#include "sim/measurement/slow_ranks.h"
#include "sim/scenario/resolve/draft.h"

namespace reckon::worker {
namespace {

using Clock = std::chrono::steady_clock;

CheckpointOptions checkpoint_options(const JobOptions& options, const Plan& plan,
                                     const DataSource& source, const Communicator& ranks,
                                     std::int64_t attempt, const RunDirectory& directory) {
  const PlannedWorkload& job = plan.only_job();
  const DataSpec data = data_of(options, job.data);
  CheckpointIdentity identity = identity_of_job(plan, data, &source);
  // An elastic job may have fewer than the plan.
  if (job.restart && job.restart->kind == RestartKind::elastic) identity.ranks = ranks.size();
  return {.directory = directory.checkpoints(),
          .identity = std::move(identity),
          .rank = ranks.rank(),
          .keep = options.keep,
          .attempt = attempt,
          // Others' steps, which rank 0's number of the set does not count, go on.
          .replaces = !job.strategy.synchronous(),
          .accept_changes = options.accept_changes,
          .parts = cuts_the_model(job.strategy) || pulls_rows(job)};
}

void add_input(const std::optional<InputWork>& input, StepRecord& to) {
  if (!input) return;
  to.read_samples = input->samples;
  to.skipped_samples = input->skipped;
  to.read_bytes = input->read;
  to.read = input->reading;
  to.requests = input->requests;
  to.decode_cpu = input->decode_cpu;
}

}  // namespace

Session::Session(const JobOptions& options, const Plan& plan, const PlanDigests& digests,
                 int attempt, Communicator& communicator, Communicator* of_worker,
                 GradientExchange& exchange, Trainer& trainer, std::int64_t steps,
                 ComputeName compute)
    : options_(options),
      plan_(plan),
      digests_(digests),
      job_(plan.only_job()),
      communicator_(communicator),
      of_worker_(of_worker),
      exchange_(exchange),
      trainer_(trainer),
      steps_(steps),
      compute_(std::move(compute)),
      clock_(environment_.clock.value_or(RunClock::started_at(options.began))),
      directory_{options.out},
      interval_(planned_save_interval(plan, job_)) {
  if (environment_.orders || orders_file()) environment_.attempt = attempt;  // the order's
  if (options.out.empty()) return;
  create_directories_durably(directory_.root);
  if (!supervised()) take_up_log(attempt);
  if (!options.log_records) log_.emplace(directory_.measurements());
  // In lockstep all ranks save the same step. Asynchronous workers, and those with backups, are at
  // steps of their own: what rank 0 and the servers have is the job's state.
  if (!in_lockstep() && communicator.rank() > 0) return;
  checkpoints_.emplace(checkpoint_options(options, plan, trainer.data(), communicator,
                                          environment_.attempt, directory_));
}

/// Nobody counted the starts of this job, or only some: the log of the run says how many there were
/// and when the first was. All ranks must agree, so rank 0 reads it.
void Session::take_up_log(int attempt) {
  using std::chrono::milliseconds;
  environment_.attempt = attempt;
  if (communicator_.rank() == 0 && std::filesystem::exists(directory_.measurements())) {
    const auto log = take_up_measurement_log(directory_.measurements());
    if (!log) throw FileError(format(log.error()));
    if (!log->damaged.empty())
      print_error(fmt::format("{}set aside in {}\n", format(damage_of(*log)),
                              damaged_lines_of(directory_.measurements()).string()));
    const NextStart next = next_start(*log);
    environment_.attempt = std::max(environment_.attempt, next.attempt);
    if (next.attempt > 0) clock_ = next.clock;
  }
  const auto since_epoch =
      std::chrono::duration_cast<milliseconds>(clock_.started().time_since_epoch());
  std::array<std::int64_t, 2> told{environment_.attempt, since_epoch.count()};
  communicator_.broadcast(std::as_writable_bytes(std::span(told)), 0);
  environment_.attempt = told[0];
  clock_ = RunClock(RunClock::Time(milliseconds(told[1])));
  began_ = clock_.at(options_.began);
}

void Session::keep(const MeasurementRecord& record) {
  if (log_)
    log_->append(record);
  else if (options_.log_records)
    print(to_line(record));
}

void Session::start(bool shared, const HeldState* held) {
  if (checkpoints_ && job_.checkpoint.local && !options_.one_tier) open_nodes();
  const bool kept = shared && share_held_state(communicator_, trainer_, held).has_value();
  if (!kept && !options_.out.empty()) restore();
  // Servers take one rank's; without servers every rank has its own.
  trainer_.start(!with_servers() || communicator_.rank() == 0);
  if (waits_for_nobody()) exchange_.begin_at(trainer_.steps_done());
  if (with_servers()) communicator_.barrier();  // nobody pushes before they have it
  record_run();
  saved_ = saved_on_nodes_ = Clock::now();
  saved_steps_ = trainer_.steps_done();
}

void Session::record_run() {
  if (!keeps_records() || communicator_.rank() != 0) return;
  const PlannedPool* pool = plan_.pool_with(Role::worker);
  keep(RunRecord{.scenario = plan_.name,
                 .attempt = environment_.attempt,
                 .started = clock_.text(),
                 .at = began_,
                 .first_step = trainer_.steps_done(),
                 .steps = steps_,
                 .model = job_.model.name(),
                 .precision = compute_.precision,
                 .optimizer = job_.optimizer == Optimizer::adamw ? "adamw" : "sgd",
                 .strategy = std::string(to_text(job_.strategy.kind)),
                 .stack = compute_.stack,
                 .workers = communicator_.size() / ranks_of_worker(job_.strategy),
                 .parameter_servers = job_.strategy.server_count(),
                 .accelerators = compute_.accelerator.empty() ? 0 : communicator_.size(),
                 .accelerator = compute_.accelerator,
                 .machine = pool != nullptr ? pool->machine.name : "",
                 .batch_per_accelerator = job_.strategy.layout.micro_batch,
                 .global_batch = job_.global_batch,
                 .seed = plan_.seed,
                 .catalog_digest = plan_.catalog_digest,
                 .plan_digest = digests_.run,
                 .planned_digest = digests_.planned,
                 .data = data_of(options_, job_.data).path});
  for (const SettingChange& change : changes_)
    keep(ChangeRecord{.attempt = environment_.attempt,
                      .step = trainer_.steps_done(),
                      .at = clock_.now(),
                      .name = change.name,
                      .recorded = change.recorded,
                      .value = change.now});
}

/// One small collective a step: the loss of all samples, whether somebody was asked to stop, and
/// whether rank 0 finds that it is time to save; with two tiers also on the nodes, and whether all
/// ranks have written what was saved there.
void Session::agree(double& loss) {
  const std::int64_t done = trainer_.steps_done() + 1;
  const bool first = communicator_.rank() == 0;
  const auto flag = [](bool set) { return set ? 1.0 : 0.0; };
  std::array<double, 6> sum{loss,
                            flag(stop_requested()),
                            flag(first && is_due(done)),
                            flag(first && orders_ && orders_->told_to_regroup()),
                            flag(first && is_due_on_nodes()),
                            flag(nodes_ && nodes_->all_written())};
  constexpr std::size_t kOfOneTier = 4;
  communicator_.all_reduce(std::span<double>(sum).first(nodes_ ? sum.size() : kOfOneTier));
  loss = sum[0] / communicator_.size();
  stopped_ = sum[1] > 0 && done < steps_;
  regroups_ = sum[3] > 0 && done < steps_ && !stopped_;
  save_due_ = sum[2] > 0 || (regroups_ && saves_to_regroup_);
  if (!nodes_) return;
  if (sum[5] > communicator_.size() - 0.5) nodes_->complete();
  nodes_due_ = sum[4] > 0 && done < steps_;
}

/// Asynchronous workers wait for nobody: each stops by itself. With backup workers no rank can do
/// without all others: the servers name the step. A loss is that of the rank's own samples.
void Session::decide_alone(std::int64_t done) {
  bool stop = stop_requested();
  if (of_worker_ != nullptr) {  // together
    double asked = stop ? 1 : 0;
    of_worker_->all_reduce(std::span(&asked, 1));
    stop = asked > 0;
  }
  if (job_.strategy.synchronous()) {
    if (stop) exchange_.request_stop();
    const auto all = exchange_.stop_step();
    stop = all && done >= *all;
  }
  stopped_ = stop && done < steps_;
  save_due_ = is_due(done);
}

void Session::record(const StepMeasurement& m) {
  if (!keeps_records()) return;
  const ExchangeTimes& x = m.exchange;
  StepRecord r{.attempt = environment_.attempt,
               .rank = communicator_.rank(),
               .step = m.step,
               .at = clock_.now(),
               .seconds = m.seconds,
               .compute = m.forward + m.backward,
               .communication = x.communication,
               .input = m.data_wait,
               .update = with_servers() ? Seconds{0} : x.apply,
               .exposed_communication = x.exposed_communication,
               .push = x.push,
               .pull = x.pull,
               .wait = x.wait,
               .apply = with_servers() ? x.apply : Seconds{0},
               .sent = x.sent,
               .samples = m.samples,
               .loss = m.loss,
               .delay = waits_for_nobody() ? std::optional(x.delay) : std::nullopt};
  if (!with_servers()) r.waits = m.waits;
  r.other = rest_of(r);
  own_ = own_time(r);
  add_input(m.input, r);
  keep(r);
}

/// Behind the step and its save.
void Session::tell(const StepMeasurement& m) {
  if (m.input && m.input->skipped > 0) report_skipped(*m.input);
  if (m.exchange.skipped && communicator_.rank() == 0)
    print_error(
        fmt::format("reckon-worker: step {} updated nothing: gradients overflow at a loss "
                    "scale of {:.6g}; it is {:.6g} now\n",
                    m.step, m.loss_scale, m.loss_scale / 2));
  const ExchangeTimes& x = m.exchange;
  progress_.report(
      {.step = m.step,
       .phase = ProgressPhase::done,
       .seconds = m.seconds,
       .samples = m.samples,
       .loss = m.loss,
       .saved = std::exchange(planned_save_, false) ? std::optional(m.checkpoint) : std::nullopt,
       .own = own_});
  if (checkpoints_) record_saves();
  if (progress_.watched() || options_.log_records || communicator_.rank() != 0) return;
  const Seconds whole = m.seconds + m.checkpoint;
  print(fmt::format(
      "step {} loss {:.4f} samples/s {:.1f} step {:.3f}s (forward {:.3f}, backward {:.3f}, data "
      "{:.3f}, communication {:.3f}, optimizer {:.3f}, checkpoint {:.3f})\n",
      m.step, m.loss, static_cast<double>(m.samples) / whole.count(), whole.count(),
      m.forward.count(), m.backward.count(), m.data_wait.count(), x.exposed_communication.count(),
      x.apply.count(), m.checkpoint.count()));
}

TrainerHooks Session::hooks() {
  TrainerHooks hooks;
  hooks.mean_loss = [this](double loss) {
    if (in_lockstep()) agree(loss);
    return loss;
  };
  hooks.progress = [this](std::int64_t step, ProgressPhase phase) {
    progress_.report({.step = step, .phase = phase});
  };
  hooks.checkpoint = [this](std::int64_t done) {
    if (!in_lockstep()) decide_alone(done);
    // Once a step: an evaluation that is left asks again.
    if (std::exchange(nodes_due_, false) && !stopped_) save_on_nodes();
    // What follows the last step may fail, or take long.
    const bool is_last = done == steps_ && trainer_.evaluates();
    if (checkpoints_ && (save_due_ || stopped_ || is_last) && !is_saved()) save(stopped_);
  };
  hooks.record = [this](const StepMeasurement& m) { record(m); };
  hooks.measured = [this](const StepMeasurement& m) { tell(m); };
  hooks.between_parts = [this](Seconds part) { return between_parts(part); };
  hooks.evaluated = [this](const EvaluationMeasurement& m) { take(m); };
  hooks.stop = [this](std::int64_t) { return stopped_ || regroups_; };
  return hooks;
}

/// Asynchronous workers end at different times: what the last of them pushed is part of the result.
/// Who leaves without having taken its last step was stopped, and then this rank stops, too.
void Session::wait_for_others() {
  constexpr std::chrono::milliseconds kBetweenQuestions{50};
  exchange_.end_steps();
  for (;;) {
    const auto ranks = exchange_.progress();
    if (std::ranges::all_of(ranks, &RankProgress::finished)) break;
    const auto gave_up = [](const RankProgress& rank) { return rank.left && !rank.finished; };
    stopped_ = stop_requested() || std::ranges::any_of(ranks, gave_up);
    if (stopped_) return save(true);
    if (Clock::now() - saved_ >= interval_) save(false);
    record_saves();
    report_saving();
    std::this_thread::sleep_for(kBetweenQuestions);
  }
  exchange_.take_final_values();
}

/// Of the same training the same bytes, however many ranks did it and however often it stopped.
void Session::write_weights() {
  const ShardHeader header{.identity = {.job = job_.model.name(), .model = job_.model.name()},
                           .step = trainer_.steps_done()};
  if (!cuts_the_model(job_.strategy)) {
    write_shard(directory_.weights(), header, trainer_.trained());
    return;
  }
  // No rank has all of it, but the last checkpoint, which all have written.
  const auto set = set_directory(directory_.checkpoints(), header.step);
  const TensorReader reader(shard_files(set, read_manifest(set).identity.ranks));
  std::vector<TensorSlice> names;
  for (const ParameterSlot& slot : parameter_layout(job_.model).slots)
    names.push_back(whole_tensor(slot.name, slot.shape));
  for (const Layer& layer : job_.model.layers())
    for (const char* kept : {".running_mean", ".running_var"})
      if (const auto found = reader.tensors().find(layer.name + kept);
          found != reader.tensors().end())
        names.push_back(found->second);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<StateTensor> tensors;
  for (const TensorSlice& tensor : names) {
    reader.read(tensor, bytes.emplace_back(bytes_of(tensor)));
    tensors.push_back({tensor, bytes.back()});
  }
  write_shard(directory_.weights(), header, tensors);
}

/// The first is named; all are in the records of their steps.
void Session::report_skipped(const InputWork& input) {
  if (std::exchange(skipped_said_, true)) return;
  print_error(fmt::format(
      "reckon-worker: warning: {}\n  the next sample is taken in its place; the records of steps "
      "count further ones (skipped_samples)\n",
      input.first_skipped));
}

void Session::finish() {
  if (!stopped_ && waits_for_nobody() && communicator_.rank() > 0) exchange_.end_steps();
  if (!checkpoints_) return;
  if (!stopped_ && waits_for_nobody()) wait_for_others();
  if (!stopped_ && !regroups_ && !is_saved()) save(false);
  report_saving();
  if (nodes_) nodes_->finish();
  checkpoints_->finish();
  if (nodes_ && !regroups_) leave_nodes();
  record_saves();
  if (communicator_.rank() != 0 || regroups_) return;
  if (!stopped_) write_weights();
  if (!supervised())  // who watches says how it ended
    keep(EndRecord{.attempt = environment_.attempt,
                   .finished = !stopped_,
                   .at = clock_.now(),
                   .steps_done = trainer_.steps_done(),
                   .detail = stopped_ ? "stopped on request" : ""});
}

}  // namespace reckon::worker
