#include "cli/worker/job.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "cli/load.h"
#include "cli/output.h"
#include "cli/worker/session.h"
#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/gloo_communicator.h"
#include "executor/comm/rendezvous.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/recipe.h"
#include "executor/train/run_lock.h"
#include "executor/train/stop_signal.h"

namespace reckon::worker {
namespace {

struct Refused {};  // diagnostics were printed

template <class T>
T take(Expected<T> value) {
  if (value) return std::move(*value);
  cli::report(value.error());
  throw Refused{};
}

cli::LoadedPlan load(const Options& options) {
  cli::Options common;
  common.overrides = options.overrides;
  common.layers = options.layers;
  common.catalogs = options.catalogs;
  const Catalog catalog = take(cli::load_catalogs(common));
  cli::LoadedPlan loaded = take(cli::load_plan(options.plan, common, catalog));
  if (options.seed) loaded.plan.seed = *options.seed;
  return loaded;
}

/// All that keeps this process from running this plan.
Diagnostics refusals(const PlannedWorkload& job, const WorkerIdentity& me,
                     const std::string& file) {
  Diagnostics errors = cannot_run(job.model);
  for (Diagnostic& error : errors) error.at.file = file;
  const auto refuse = [&](std::string what, std::string hint) {
    errors.push_back({.at = {.file = file}, .what = std::move(what), .hint = std::move(hint)});
  };
  switch (job.strategy.kind) {
    case StrategyKind::single:
    case StrategyKind::mirrored:
    case StrategyKind::multi_worker_mirrored:
      break;
    default:
      refuse("the worker does not run this strategy",
             "it runs single, mirrored and multi_worker_mirrored");
  }
  if (job.global_batch % me.workers != 0)
    refuse(fmt::format("{} workers do not share out a global batch of {}", me.workers,
                       job.global_batch),
           "start as many processes as the plan has workers");
  if (me.servers > 0 || !me.computes())
    refuse("this process is no worker", "the strategy has workers only");
  return errors;
}

/// The processes that meet, or this one alone.
struct Peers {
  std::unique_ptr<Membership> membership;
  std::unique_ptr<Communicator> communicator;
};
Peers meet(const Options& options, const WorkerIdentity& me) {
  if (me.members() == 1) return {nullptr, std::move(make_thread_communicators(1)[0])};
  auto membership = Membership::join({.job = me.job,
                                      .attempt = me.attempt,
                                      .rank = me.rank,
                                      .size = me.members(),
                                      .role = me.role,
                                      .master = me.master,
                                      .address = me.address,
                                      .port = me.port,
                                      .deadline = options.rendezvous_deadline});
  auto communicator = make_gloo_communicator(*membership);
  return {std::move(membership), std::move(communicator)};
}

int threads_of(const Options& options) {
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

int train(const Options& options, const cli::LoadedPlan& loaded, const WorkerIdentity& me) {
  const Plan& plan = loaded.plan;
  const PlannedWorkload& job = plan.jobs[0];
  const std::int64_t steps = options.steps ? std::min(*options.steps, job.steps) : job.steps;
  DataSpec data = job.data;
  if (!options.data.empty()) data.path = std::filesystem::absolute(options.data).string();
  const auto source = open_data(data, loaded.file.directory, job.model, plan.seed,
                                static_cast<std::int64_t>(job.dataset.samples.value.v));

  const RunEnvironment environment = RunEnvironment::read();
  if (environment.supervisor) end_with_parent(*environment.supervisor);
  std::optional<RunLock> lock;  // whoever started this process may hold it already
  if (environment.lock) {
    lock.emplace(*environment.lock);
  } else if (!options.out.empty() && me.rank == 0) {
    std::filesystem::create_directories(options.out);
    lock.emplace(options.out);
  }

  const Peers peers = meet(options, me);
  const auto exchange = make_all_reduce_exchange(
      *peers.communicator, {.optimizer = optimizer_rule(job),
                            .trained = trained_ranges(parameter_layout(job.model)),
                            .clip_norm = job.optimizer_settings.clip_norm});
  Workers workers(threads_of(options));
  const RankShare share = share_of(job, me.rank, me.workers);
  Trainer trainer(job.model,
                  {.share = share,
                   .micro_batch = micro_batch_of(
                       share.own, options.micro_batch.value_or(job.batch_per_accelerator)),
                   .steps = job.steps,
                   .seed = plan.seed,
                   .recompute = job.strategy.recompute,
                   .optimizer = job.optimizer_settings,
                   .data_threads = options.data_threads},
                  *source, *exchange, workers);
  Session session(options, plan, *peers.communicator, trainer, steps);
  session.restore();
  trainer.train_until(steps, session.hooks());
  session.finish();
  return session.stopped() ? kExitStoppedOnRequest : cli::kDone;
}

}  // namespace

int run_job(const Options& options) {
  try {
    const cli::LoadedPlan loaded = load(options);
    const WorkerIdentity me = take(worker_identity(options.identity, process_environment()));
    const Diagnostics errors = refusals(loaded.plan.jobs[0], me, options.plan);
    if (!errors.empty()) {
      cli::report(errors);
      return cli::kInputIsWrong;
    }
    return train(options, loaded, me);
  } catch (const Refused&) {
    return cli::kInputIsWrong;
  }
}

}  // namespace reckon::worker
