#include "executor/worker/job.h"

#include <fmt/format.h>

#include <filesystem>

#include "executor/comm/rendezvous/own_address.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/records/run_directory.h"
#include "executor/train/stop_signal.h"
#include "executor/train/trainable.h"
#include "executor/worker/compute.h"
#include "executor/worker/server.h"
#include "executor/worker/training.h"
#include "sim/base/standard_streams.h"
#include "sim/scenario/resolve/one_worker.h"
#include "sim/scenario/restart.h"

namespace reckon::worker {
namespace {

/// Where nothing says which process of a job this is: the variables that another program may have
/// meant so.
std::string why_by_itself(const WorkerIdentity& me) {
  const std::string unread = unread_launcher(process_environment());
  if (!me.source.empty() || unread.empty()) return "";
  return fmt::format(
      "; {} of this process' launcher is not read: set RANK, WORLD_SIZE, MASTER_ADDR and "
      "MASTER_PORT, or give --rank, --workers and --master",
      unread);
}

/// All that keeps this process from running this plan.
Diagnostics refusals(const Plan& plan, const WorkerIdentity& me, const std::string& file) {
  const PlannedWorkload& job = plan.only_job();
  Diagnostics errors = cannot_train(plan);
  for (Diagnostic& error : errors) error.at.file = file;
  const auto refuse = [&](std::string what, std::string hint) {
    errors.push_back({.at = {.file = file}, .what = std::move(what), .hint = std::move(hint)});
  };
  const bool servers = job.strategy.servers.has_value();
  if (servers && me.servers == 0)
    refuse("the strategy has parameter servers, this job has none",
           "start them too: `reckon run` does, or --servers N and --role ps");
  const int each = ranks_of_worker(job.strategy), ranks = computing_ranks(job.strategy);
  if (!trains_on(job, me.workers))
    refuse(each == 1 ? fmt::format("the plan has {} workers, this job {}", ranks, me.workers)
                     : fmt::format("the plan has {} workers of {} ranks each, this job has {} "
                                   "processes",
                                   job.strategy.workers, each, me.workers),
           (each == 1 ? "change workload.strategy.workers, or start as many processes"
                      : fmt::format("start {} workers, each of which starts its ranks, or all {} "
                                    "ranks yourself",
                                    job.strategy.workers, ranks)) +
               why_by_itself(me));
  if (!servers && me.servers > 0)
    refuse("this job has parameter servers, the strategy none", "start its workers only");
  if (me.rank < 0) refuse("an evaluator is not run", "start workers and parameter servers");
  return errors;
}

/// What was said of this process, by whoever started it.
WorkerIdentity identity_of(const JobOptions& options) {
  auto identity = worker_identity(options.identity, process_environment());
  if (!identity) throw RefusedJob(std::move(identity.error()));
  auto address = own_address(*identity);
  if (!address) throw RefusedJob(std::move(address.error()));
  identity->address = std::move(*address);
  return std::move(*identity);
}

/// A rank of that worker, as the one who started it says.
WorkerIdentity rank_of_worker(WorkerIdentity worker, int ranks, const RunEnvironment& told) {
  const int own = *told.rank_of_worker;
  worker.rank = worker.index = worker.rank * ranks + own;
  worker.role = worker.rank == 0 ? Role::chief : Role::worker;
  worker.workers *= ranks;
  worker.local_rank = own;
  worker.port = 0;
  if (told.meeting) worker.master = *told.meeting;
  return worker;
}

/// A server of a job whose workers are several ranks each is told how many workers there are.
WorkerIdentity server_of_ranks(WorkerIdentity server, const PlannedStrategy& strategy) {
  if (server.workers != strategy.workers) return server;
  server.workers = computing_ranks(strategy);
  server.rank += server.workers - strategy.workers;
  return server;
}

}  // namespace

bool trains_on(const PlannedWorkload& job, int ranks) {
  if (ranks == computing_ranks(job.strategy)) return true;
  const int each = ranks_of_worker(job.strategy), workers = ranks / each;
  return ranks % each == 0 && job.restart && job.restart->kind == RestartKind::elastic &&
         workers < job.strategy.workers &&
         usable_workers(workers, workers_of_a_copy(job), job.restart->min_workers) == workers;
}

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
  const RunEnvironment told = RunEnvironment::read();
  if (const auto parent = told.parent ? told.parent : told.supervisor) end_with_parent(*parent);
}

std::optional<WorkerOfRanks> worker_of_ranks(const JobOptions& options, const Job& job) {
  if (job.plan.jobs.size() != 1 || RunEnvironment::read().rank_of_worker) return std::nullopt;
  const PlannedStrategy& strategy = job.plan.only_job().strategy;
  const int ranks = ranks_of_worker(strategy);
  if (ranks == 1) return std::nullopt;
  const WorkerIdentity me = identity_of(options);
  if (!me.computes() || me.workers != strategy.workers) return std::nullopt;
  WorkerIdentity first = me;
  first.workers = computing_ranks(strategy);
  Diagnostics errors = refusals(job.plan, first, job.file);
  if (!errors.empty()) throw RefusedJob(std::move(errors));
  if (const std::string why = why_too_few_devices(options.device, ranks); !why.empty())
    throw std::runtime_error(why);
  if (const std::string apart =
          what_is_apart(options.device, ranks, *computing_pools(job.plan).front());
      !apart.empty())
    print_error(fmt::format("reckon-worker: warning: {}\n", apart));
  return WorkerOfRanks{.ranks = ranks, .first = me.rank * ranks, .alone = me.members() == 1};
}

int run_job(const JobOptions& options, const Job& job) {
  WorkerIdentity me = identity_of(options);
  if (const RunEnvironment told = RunEnvironment::read(); told.rank_of_worker)
    me = rank_of_worker(me, ranks_of_worker(job.plan.only_job().strategy), told);
  else if (me.role == Role::parameter_server)
    me = server_of_ranks(me, job.plan.only_job().strategy);
  Diagnostics errors = refusals(job.plan, me, job.file);
  if (!errors.empty()) throw RefusedJob(std::move(errors));
  if (!me.computes()) return serve(options, job.plan, me);
  return train(options, job, me);
}

}  // namespace reckon::worker
