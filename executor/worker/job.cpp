#include "executor/worker/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "executor/comm/gloo_communicator.h"
#include "executor/comm/parameter_server/parameter_server.h"
#include "executor/comm/parameter_server/ps_exchange.h"
#include "executor/comm/rendezvous/rendezvous.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/layouts/layout_training.h"
#include "executor/train/products/matrix.h"
#include "executor/train/pulled_tables.h"
#include "executor/train/recipe.h"
#include "executor/train/records/run_lock.h"
#include "executor/train/stop_signal.h"
#include "executor/train/trainable.h"
#include "executor/worker/compute.h"
#include "executor/worker/session.h"
#include "sim/base/standard_streams.h"
#include "sim/scenario/resolve/one_worker.h"

namespace reckon::worker {
namespace {

constexpr int kTrained = 0;  // exit code

/// All that keeps this process from running this plan.
Diagnostics refusals(const Plan& plan, const WorkerIdentity& me, const std::string& file) {
  const PlannedWorkload& job = plan.only_job();
  Diagnostics errors = cannot_train(plan);
  for (Diagnostic& error : errors) error.at.file = file;
  const auto refuse = [&](std::string what, std::string hint) {
    errors.push_back({.at = {.file = file}, .what = std::move(what), .hint = std::move(hint)});
  };
  const bool servers = job.strategy.kind == StrategyKind::parameter_server;
  if (servers && me.servers == 0)
    refuse("the strategy has parameter servers, this job has none",
           "start them too: `reckon run` does, or --servers N and --role ps");
  if (me.workers != job.strategy.workers)
    refuse(fmt::format("the plan has {} workers, this job {}", job.strategy.workers, me.workers),
           "change workload.strategy.workers, or start as many processes");
  if (!servers && me.servers > 0)
    refuse("this job has parameter servers, the strategy none", "start its workers only");
  if (me.rank < 0) refuse("an evaluator is not run", "start workers and parameter servers");
  return errors;
}

void warn(const std::string& text) {
  print_error(fmt::format("reckon-worker: warning: {}\n", text));
}

/// Whoever started this process listens for rank 0 already.
std::optional<Socket> inherited_rendezvous(const WorkerIdentity& me) {
  const auto descriptor = RunEnvironment::read().rendezvous;
  if (me.rank != 0 || !descriptor) return std::nullopt;
  return Socket{*descriptor};
}

/// nullopt: this process meets nobody. It may come from a pipe, so it is read once.
std::optional<JobSecret> secret_of(const JobOptions& options, const WorkerIdentity& me) {
  if (me.members() == 1) return std::nullopt;
  try {
    return JobSecret::of_process(options.secret_file);
  } catch (const SecretError& error) {
    throw std::invalid_argument(error.what());
  }
}

std::unique_ptr<Membership> join(const JobOptions& options, const WorkerIdentity& me,
                                 const JobSecret& secret, std::uint16_t port) {
  return Membership::join({.secret = secret,
                           .job = me.job,
                           .attempt = me.attempt,
                           .rank = me.rank,
                           .size = me.members(),
                           .role = me.role,
                           .master = me.master,
                           .address = me.address,
                           .port = port,
                           .deadline = options.rendezvous_deadline,
                           .warn = warn},
                          inherited_rendezvous(me));
}

/// The workers that meet, or this one alone.
struct Peers {
  std::unique_ptr<Membership> membership;
  std::unique_ptr<Communicator> communicator;
};
Peers meet(const JobOptions& options, const PlannedStrategy& strategy, const WorkerIdentity& me,
           const std::optional<JobSecret>& secret) {
  if (!secret) return {nullptr, std::move(make_thread_communicators(1)[0])};
  auto membership = join(options, me, *secret, me.port);
  using Kind = GlooOptions::AllReduce;
  const Kind kind = options.sum_directly                         ? Kind::direct
                    : strategy.all_reduce == AllReduceKind::ring ? Kind::ring
                                                                 : Kind::automatic;
  auto communicator =
      make_gloo_communicator(*membership, {.ranks = me.workers, .all_reduce = kind});
  return {std::move(membership), std::move(communicator)};
}

constexpr Seconds kServerTimeout{120};  // longest wait for a worker or a server

ServerJob server_job(const JobOptions& options, const PlannedWorkload& job,
                     const WorkerIdentity& me) {
  const ParameterLayout layout = pulls_rows(job)
                                     ? pulled_layout(job.model, share_of(job, 0, me.workers).own)
                                     : parameter_layout(job.model);
  std::vector<ParameterRange> layers;
  std::vector<TableKeys> tables;
  for (const ParameterSlot& slot : layout.slots) {
    layers.push_back({slot.first, slot.count});
    TableKeys& keys = tables.emplace_back();
    if (slot.pulled)
      keys = {.rows = static_cast<std::size_t>(slot.global.front()),
              .width = static_cast<std::size_t>(slot.global.back()),
              .rule = job.strategy.servers->rows};
  }
  return {.keys = server_keys(layers, std::vector<double>(static_cast<std::size_t>(me.servers), 1),
                              tables),
          .workers = me.workers,
          .synchronous = job.strategy.synchronous(),
          .backup_workers = job.strategy.backup_workers(),
          .staleness = job.strategy.servers->staleness,
          .phases_apart = options.phases_apart && job.strategy.synchronous(),
          .optimizer = optimizer_rule(job),
          .trained = trained_ranges(layout)};
}

/// Of a parameter server, as the others are told it: where it was said to be reached, else where it
/// reaches rank 0 from. "": everywhere, where that is not known yet, or is a loopback by which none
/// but this machine's processes come.
std::string listening_address(const WorkerIdentity& me) {
  if (!me.address.empty()) return me.address;
  if (is_loopback(me.master.host)) return me.master.host;
  const std::string own = local_address_towards(me.master);
  return is_loopback(own) ? "" : own;
}

int serve(const JobOptions& options, const PlannedWorkload& job, const WorkerIdentity& me) {
  const JobSecret secret = secret_of(options, me).value();
  Socket listener = listen_on({listening_address(me), me.port});
  const auto membership = join(options, me, secret, listener.local().port);
  run_parameter_server(*membership, me.job, me.rank - me.workers, server_job(options, job, me),
                       std::move(listener), kServerTimeout);
  return stop_requested() ? kExitStoppedOnRequest : kTrained;
}

/// Goes before the communicator of its exchange does.
LayoutTraining make_training(const JobOptions& options, const PlannedWorkload& job,
                             const WorkerIdentity& me, const Peers& peers, Compute* compute,
                             const RuntimeOptions& passes, Workers& workers) {
  const bool servers = job.strategy.kind == StrategyKind::parameter_server;
  if (!compute && !servers) return make_layout_training(job, *peers.communicator, passes, workers);
  LayoutTraining training{.share = share_of(job, me.rank, me.workers)};
  training.exchange = compute ? compute->make_exchange()
                              : make_ps_exchange(*peers.membership, me.job,
                                                 server_job(options, job, me), kServerTimeout);
  training.runtime =
      compute ? compute->make_runtime(passes) : make_cpu_runtime(job.model, passes, workers);
  return training;
}

int threads_of(const JobOptions& options) {
  if (options.threads > 0) return options.threads;
  const char* sharing = std::getenv("LOCAL_WORLD_SIZE");
  const int processes = sharing != nullptr ? std::max(1, std::atoi(sharing)) : 1;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / processes);
}

/// The largest part of `own` that is at most `wanted` and divides it.
std::int64_t micro_batch_of(std::int64_t own, std::int64_t wanted) {
  std::int64_t part = std::min(own, wanted);
  while (own % part != 0) --part;
  return part;
}

int train(const JobOptions& options, const Job& loaded, const WorkerIdentity& me) {
  const Plan& plan = loaded.plan;
  const PlannedWorkload& job = plan.only_job();
  const std::int64_t steps = options.steps ? std::min(*options.steps, job.steps) : job.steps;
  if (options.steps && *options.steps > job.steps && me.rank == 0)
    print_error(
        fmt::format("reckon-worker: warning: --steps {}, but the plan has {}: no more are done "
                    "(--set workload.train.steps={})\n",
                    *options.steps, job.steps, *options.steps));
  DataSpec data = job.data;
  if (!options.data.empty()) data.path = std::filesystem::absolute(options.data).string();
  const auto source =
      open_data(data, loaded.directory, job.model, plan.seed,
                static_cast<std::int64_t>(job.dataset.samples.value.v), job.zipf_exponent.value);

  const std::optional<JobSecret> secret = secret_of(options, me);  // before files are touched
  const RunEnvironment environment = RunEnvironment::read();
  std::optional<RunLock> lock;  // whoever started this process may hold it already
  if (environment.lock) {
    lock.emplace(*environment.lock);
  } else if (!options.out.empty() && me.rank == 0) {
    create_directories_durably(options.out);
    lock.emplace(options.out);
  }

  const Peers peers = meet(options, job.strategy, me, secret);
  const auto compute = choose_device(options, job, me, *peers.communicator);
  Workers workers(threads_of(options));
  const bool cut = cuts_the_model(job.strategy.kind);
  const RankShare share = share_of(job, 0, cut ? job.strategy.layout.data : me.workers);
  const RuntimeOptions passes{
      .batch =
          micro_batch_of(share.own, options.micro_batch.value_or(job.strategy.layout.micro_batch)),
      .recompute = job.strategy.layout.recompute,
      .seed = plan.seed,
      .layout =
          pulls_rows(job) ? std::optional(pulled_layout(job.model, share.own)) : std::nullopt};
  LayoutTraining training = make_training(options, job, me, peers, compute.get(), passes, workers);
  Trainer trainer(job.model,
                  {.share = training.share,
                   .micro_batch = passes.batch,
                   .steps = job.steps,
                   .seed = plan.seed,
                   .recompute = job.strategy.layout.recompute,
                   .optimizer = job.optimizer_settings,
                   .optimizer_buffers = job.optimizer == Optimizer::adamw ? 2u : 1u,
                   .data_threads = options.data_threads,
                   .keeps_tables = me.rank == 0},
                  *source, *training.exchange, workers, std::move(training.runtime));
  const ComputeName name =
      compute ? compute->name()
              : ComputeName{.stack = fmt::format("reckon-cpu-{}", matrix_instructions())};
  Session session(options, plan, loaded.digests, me.attempt, *peers.communicator,
                  *training.exchange, trainer, steps, name);
  session.start();
  trainer.train_until(steps, session.hooks());
  session.finish();
  return session.stopped() ? kExitStoppedOnRequest : kTrained;
}

}  // namespace

Job job_of_run(ReadArtifact read, const std::string& file) {
  if (auto problem = why_not_run(read, file)) throw RefusedJob({std::move(*problem)});
  const auto own = std::filesystem::absolute(file).parent_path();
  PlanDigests digests = digests_of(read.artifact);
  return {.plan = std::move(read.artifact.plan),
          .file = file,
          .directory = (own / read.artifact.file).parent_path(),
          .digests = std::move(digests)};
}

Job alone(Job job) {
  auto one = one_worker(job.plan);
  if (!one)
    throw RefusedJob({{.at = {.file = job.file},
                       .what = "no worker of this plan holds a whole model",
                       .hint = "--alone takes data-parallel strategies"}});
  job.plan = std::move(*one);
  return job;
}

void end_with_supervisor() {
  if (const auto supervisor = RunEnvironment::read().supervisor) end_with_parent(*supervisor);
}

int run_job(const JobOptions& options, const Job& job) {
  auto identity = worker_identity(options.identity, process_environment());
  if (!identity) throw RefusedJob(std::move(identity.error()));
  const WorkerIdentity& me = *identity;
  Diagnostics errors = refusals(job.plan, me, job.file);
  if (!errors.empty()) throw RefusedJob(std::move(errors));
  if (!me.computes()) return serve(options, job.plan.only_job(), me);
  return train(options, job, me);
}

}  // namespace reckon::worker
