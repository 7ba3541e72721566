#include "executor/worker/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>
#include <utility>

#include "executor/comm/parameter_server/ps_exchange.h"
#include "executor/comm/parameter_server/worker_exchange.h"
#include "executor/train/held_state.h"
#include "executor/train/layouts/layout_training.h"
#include "executor/train/products/matrix.h"
#include "executor/train/pulled_tables.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/records/orders.h"
#include "executor/train/records/pod_orders.h"
#include "executor/train/records/progress.h"
#include "executor/train/records/run_lock.h"
#include "executor/train/records/shared_output.h"
#include "executor/train/stop_signal.h"
#include "executor/worker/agreement.h"
#include "executor/worker/compute.h"
#include "executor/worker/meeting.h"
#include "executor/worker/opened_data.h"
#include "executor/worker/server.h"
#include "executor/worker/session.h"
#include "executor/worker/threads.h"
#include "sim/base/standard_streams.h"
#include "sim/cluster/restart.h"
#include "sim/scenario/restart.h"

namespace reckon::worker {
namespace {

constexpr int kTrained = 0;  // exit code

/// Goes before the communicator of its exchange does.
LayoutTraining make_training(const JobOptions& options, const PlannedWorkload& job,
                             const WorkerIdentity& me, const Peers& peers, Communicator* of_worker,
                             Compute* compute, const RuntimeOptions& passes, Workers& workers,
                             bool goes_on_from_memory) {
  const bool servers = job.strategy.servers.has_value();
  if (!servers && (!compute || cuts_the_model(job.strategy)))
    return make_layout_training(job, *peers.communicator, passes, workers,
                                compute ? &compute->layouts() : nullptr, goes_on_from_memory);
  LayoutTraining training{.share = share_of(job, me.rank, me.workers)};
  if (compute) training.runtime = compute->make_runtime(passes);
  if (servers) {
    if (of_worker == nullptr || of_worker->rank() == 0)
      training.exchange =
          make_ps_exchange(*peers.membership, me.job, server_job(options, job, me), kServerTimeout);
    if (compute)
      training.exchange = compute->stage(std::move(training.exchange), training.runtime->layout());
    else if (of_worker)
      training.exchange =
          make_worker_exchange(*of_worker, std::move(training.exchange),
                               job.strategy.synchronous() && job.strategy.backup_workers() == 0);
  } else {
    training.exchange = compute->make_exchange();
  }
  if (!compute) training.runtime = make_cpu_runtime(job.model, passes, workers);
  return training;
}

/// The ranks of this one's worker, where parameter servers see them as one; else null. Collective
/// over all.
std::unique_ptr<Communicator> ranks_of_own_worker(const PlannedStrategy& strategy,
                                                  Communicator& peers) {
  const int each = ranks_of_worker(strategy);
  if (!strategy.servers || each == 1) return nullptr;
  std::vector<int> ranks(static_cast<std::size_t>(each));
  std::iota(ranks.begin(), ranks.end(), peers.rank() / each * each);
  return peers.subgroup(ranks);
}

/// The largest part of `own` that is at most `wanted` and divides it.
std::int64_t micro_batch_of(std::int64_t own, std::int64_t wanted) {
  std::int64_t part = std::min(own, wanted);
  while (own % part != 0) --part;
  return part;
}

/// What a process has once, for all starts of the job in which it takes part.
struct Prepared {
  const JobOptions& options;
  const Job& loaded;
  const DataSource& source;
  const DataSource* validation;  // nullptr: no evaluation passes
  const std::optional<JobSecret>& secret;
  std::atomic<bool>& reading_ends;  // JobData::reading_ends
};

/// Goes before what reads ahead does, which would wait for a store that nobody needs any more.
class ReadingOfStart {
 public:
  explicit ReadingOfStart(std::atomic<bool>& ends) : ends_(ends) {}
  ~ReadingOfStart() { ends_ = true; }
  ReadingOfStart(const ReadingOfStart&) = delete;
  ReadingOfStart& operator=(const ReadingOfStart&) = delete;

 private:
  std::atomic<bool>& ends_;
};

/// Of a process that outlives a start of the job.
struct Stay {
  Orders orders;
  bool keeps_state = false;  // those that are left hold all of the job's
  std::optional<HeldState> held;
  bool told = false;  // to regroup
};

/// May ranks that are left hold all of the job's state, by the forecast's rule? Which of them do is
/// seen when they meet.
bool keeps_state_after_loss(const PlannedWorkload& job) {
  const bool copies = job.strategy.workers > workers_of_a_copy(job);
  return job.restart && kept_after(job.restart->kind, copies_hold_all(job) && copies, {},
                                   Loss::process) == Kept::processes;
}

/// How the job goes on in memory, where a start of it broke.
void hold_state(Stay& stay, Trainer& trainer) {
  if (!stay.keeps_state) return;
  try {
    stay.held.emplace(trainer);
  } catch (const std::exception&) {  // nothing that one could go on from
    stay.held.reset();
  }
}

/// What devices make of what a lost rank did not send says nothing, and they may meet it before the
/// news comes.
bool comes_to_know_loss(Membership* membership) {
  constexpr Seconds kNews{2};
  const auto until = std::chrono::steady_clock::now() + kNews;
  while (membership != nullptr && std::chrono::steady_clock::now() < until) {
    if (membership->knows_loss()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

/// With peers that have met.
int train_with(const Peers& peers, const Prepared& prepared, const PlannedWorkload& job,
               const WorkerIdentity& me, Stay* stay, bool& on_device) {
  const JobOptions& options = prepared.options;
  const Plan& plan = prepared.loaded.plan;
  const std::int64_t steps = options.steps ? std::min(*options.steps, job.steps) : job.steps;
  const auto of_worker = ranks_of_own_worker(job.strategy, *peers.communicator);
  const auto compute = choose_device(options, job, me,
                                     {.all = *peers.communicator,
                                      .of_worker = of_worker.get(),
                                      .membership = peers.membership.get()},
                                     on_device);
  // Others than these save at steps of their own, rank 0 alone.
  if (!options.out.empty() && job.strategy.synchronous() && job.strategy.backup_workers() == 0)
    require_shared_output(*peers.communicator, options.out, [&](int rank) {
      return peers.membership->members()[static_cast<std::size_t>(rank)].host;
    });
  Workers workers(computing_threads(options));
  const PlannedWorkload& planned = plan.only_job();
  const bool cut = cuts_the_model(job.strategy);
  const RankShare share =
      share_of(planned, 0, cut ? planned.strategy.layout.data : computing_ranks(planned.strategy));
  const RuntimeOptions passes{
      .batch =
          micro_batch_of(share.own, options.micro_batch.value_or(job.strategy.layout.micro_batch)),
      .recompute = job.strategy.layout.recompute,
      .seed = plan.seed,
      .layout = pulls_rows(job) ? std::optional(pulled_layout(job.model, share.own)) : std::nullopt,
      .rounding = rounding_of(job.precision)};
  LayoutTraining training = make_training(options, job, me, peers, of_worker.get(), compute.get(),
                                          passes, workers, stay != nullptr && stay->keeps_state);
  Trainer trainer(
      job.model,
      {.share = training.share,
       .micro_batch = passes.batch,
       .steps = job.steps,
       .seed = plan.seed,
       .recompute = job.strategy.layout.recompute,
       .optimizer = job.optimizer_settings,
       .optimizer_buffers = job.optimizer == Optimizer::adamw ? 2u : 1u,
       .loss_scale =
           job.precision == Precision::fp16 ? std::optional<LossScale>(LossScale()) : std::nullopt,
       .data_threads = loading_threads(options, data_of(options, job.data)),
       .keeps_tables = me.rank == 0,
       .validation = prepared.validation,
       .evaluations = [&](std::int64_t done) { return evaluations_after(planned, done); }},
      prepared.source, *training.exchange, workers, std::move(training.runtime));
  const ReadingOfStart reading(prepared.reading_ends);
  const ComputeName name =
      compute ? compute->name()
              : ComputeName{.precision = std::string(to_text(held_in(passes.rounding))),
                            .stack = fmt::format("reckon-cpu-{}", matrix_instructions())};
  Session session(options, plan, prepared.loaded.digests, me.attempt, *peers.communicator,
                  of_worker.get(), *training.exchange, trainer, steps, name);
  if (stay) session.obeys(stay->orders, !stay->keeps_state);
  bool started = false;
  const auto leave = [&] {  // a peer is lost
    session.abandon();
    if (stay && started) hold_state(*stay, trainer);
  };
  try {
    session.start(stay && stay->keeps_state, stay && stay->held ? &*stay->held : nullptr);
    started = true;
    if (stay) stay->held.reset();
    trainer.train_until(steps, session.hooks());
    session.finish();
  } catch (const CommError&) {
    leave();
    throw;
  } catch (const TrainingError&) {  // before an update
    if (on_device && comes_to_know_loss(peers.membership.get())) leave();
    throw;
  }
  // A pod that is told to end saves with all others; they go on when there is another in its place.
  const bool another_ends =
      session.stopped() && stay && stay->orders.of_a_pod() && !stop_requested();
  if (session.regroups() || another_ends) {
    stay->told = true;
    hold_state(*stay, trainer);
  }
  return session.stopped() ? kExitStoppedOnRequest : kTrained;
}

/// One start: from meeting the others to the end, or until a peer is lost.
int train(const Prepared& prepared, const PlannedWorkload& job, const WorkerIdentity& me,
          std::optional<Socket> listener, Stay* stay) {
  prepared.reading_ends = false;  // that of the start before has ended
  std::optional<EndsOnRequest> waiting;
  if (stay == nullptr && !RunEnvironment::read().supervisor) waiting.emplace();
  const Peers peers =
      meet(prepared.options, prepared.loaded.plan, me, prepared.secret, std::move(listener),
           data_in_common(prepared.source, prepared.validation));
  waiting.reset();
  bool on_device = false;
  try {
    return train_with(peers, prepared, job, me, stay, on_device);
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    if (!on_device || !comes_to_know_loss(peers.membership.get())) throw;
    throw peers.membership->lost_peer(error.what(), Seconds{0});
  }
}

/// The part that an order gives this process.
WorkerIdentity identity_by(const TrainOrder& order, WorkerIdentity me, bool of_a_pod) {
  me.rank = me.index = order.rank;
  if (!of_a_pod) me.local_rank = order.rank;  // all ranks are on this machine
  me.role = order.rank == 0 ? Role::chief : Role::worker;
  me.workers = order.workers;
  me.master = order.master;
  me.attempt = static_cast<int>(order.attempt);
  return me;
}

/// Why the job has no such part.
std::string why_not_part(const PlannedWorkload& job, const TrainOrder& order) {
  if (trains_on(job, order.workers)) return "";
  const bool shrinks = job.restart && job.restart->kind == RestartKind::elastic;
  return fmt::format("start {} is to be of {} ranks, and the plan has {}{}", order.attempt,
                     order.workers, computing_ranks(job.strategy),
                     shrinks ? ", or fewer in whole copies, as many as its restart allows" : "");
}

Orders orders_for(const RunEnvironment& environment, const PlannedWorkload& job,
                  const WorkerIdentity& me) {
  const auto file = orders_file();
  if (!file) return Orders(*environment.orders);
  std::optional<TrainOrder> own;
  if (!environment.stands_by && (!job.restart || job.restart->kind == RestartKind::in_place))
    own = {.attempt = me.attempt, .rank = me.rank, .workers = me.workers, .master = me.master};
  RankOfPod rank;
  if (environment.rank_of_worker)
    rank = {.ranks = ranks_of_worker(job.strategy), .number = *environment.rank_of_worker};
  return {*file, own, [&job](const TrainOrder& order) { return why_not_part(job, order); }, rank};
}

/// All pods run when they are told to meet: who does not come then is lost.
constexpr Seconds kPodsMeetWithin{60};

/// The pod that this one comes in place of may still be saving.
RunLock lock_of_pod(const std::filesystem::path& directory) {
  constexpr std::chrono::minutes kLongestNotice{3};
  const auto until = std::chrono::steady_clock::now() + kLongestNotice;
  while (!stop_requested() && std::chrono::steady_clock::now() < until) {
    if (auto lock = RunLock::if_free(directory)) return std::move(*lock);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return RunLock(directory);  // says who has it
}

/// Starts of the job in which this process takes part, one after the other as it is told, until it
/// is trained or asked to stop. Who lost a peer leaves the mesh and waits.
int train_as_told(const Prepared& prepared, WorkerIdentity me, std::optional<Socket> listener,
                  const RunEnvironment& environment) {
  const PlannedWorkload& planned = prepared.loaded.plan.only_job();
  Stay stay{.orders = orders_for(environment, planned, me),
            .keeps_state = keeps_state_after_loss(planned),
            .held = std::nullopt};
  ProgressPipe progress;
  JobOptions options = prepared.options;
  const bool pod = stay.orders.of_a_pod();
  if (pod) options.rendezvous_deadline = std::min(options.rendezvous_deadline, kPodsMeetWithin);
  const Prepared again{options,         prepared.loaded,      prepared.source, prepared.validation,
                       prepared.secret, prepared.reading_ends};
  std::int64_t attempt = -1;    // none yet
  std::optional<RunLock> lock;  // of a pod while it is rank 0
  for (bool waits = environment.stands_by || pod;; waits = true) {
    if (waits) {
      if (pod) print(waiting_line(attempt));
      progress.report({.step = stay.held ? stay.held->steps_done() : 0,
                       .phase = ProgressPhase::waiting,
                       .attempt = attempt,
                       .told = std::exchange(stay.told, false)});
      auto received = stay.orders.wait();
      if (!received) return kExitStoppedOnRequest;
      options.began = std::chrono::steady_clock::now();
      me = identity_by(received->order, me, pod);
      listener = std::move(received->listener);
      if (pod) print(part_line(received->order));
      if (me.rank != 0) lock.reset();
      if (pod && me.rank == 0 && !lock && !options.out.empty()) {
        create_directories_durably(options.out);
        lock.emplace(lock_of_pod(options.out));
      }
    }
    attempt = me.attempt;
    const bool fewer = me.workers < computing_ranks(planned.strategy);
    PlannedWorkload job =
        fewer ? with_fewer_workers(planned, me.workers / ranks_of_worker(planned.strategy))
              : planned;
    job.global_batch = planned.global_batch;  // the exact one: shares need not be equal
    try {
      const int code = train(again, job, me, std::exchange(listener, std::nullopt), &stay);
      if (!stay.told) return code;
    } catch (const CommError& error) {
      if (stop_requested()) throw;
      print_error(fmt::format("reckon-worker: error: {}\n", error.what()));
    }
  }
}

}  // namespace

int train(const JobOptions& options, const Job& loaded, const WorkerIdentity& me) {
  const Plan& plan = loaded.plan;
  const PlannedWorkload& job = plan.only_job();
  if (options.steps && *options.steps > job.steps && me.rank == 0)
    print_error(
        fmt::format("reckon-worker: warning: --steps {}, but the plan has {}: no more are done "
                    "(--set workload.train.steps={})\n",
                    *options.steps, job.steps, *options.steps));
  const std::optional<JobData> data = open_data_of(options, loaded, me);
  if (!data) return kExitStoppedOnRequest;

  const std::optional<JobSecret> secret = secret_of(options, me);  // before files are touched
  const RunEnvironment environment = RunEnvironment::read();
  std::optional<RunLock> lock;  // whoever started this process may hold it already
  if (environment.lock) {
    lock.emplace(*environment.lock);
  } else if (!options.out.empty() && me.rank == 0 && !orders_file()) {
    create_directories_durably(options.out);
    lock.emplace(options.out);
  }
  std::optional<Socket> listener;
  if (me.rank == 0 && environment.rendezvous) listener.emplace(*environment.rendezvous);
  const Prepared prepared{
      options, loaded, *data->training, data->validation.get(), secret, *data->reading_ends};
  if (environment.orders || orders_file())
    return train_as_told(prepared, me, std::move(listener), environment);
  if (!environment.supervisor) end_at_second_interrupt();
  return train(prepared, job, me, std::move(listener), nullptr);
}

}  // namespace reckon::worker
