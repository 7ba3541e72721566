#include "executor/worker/job.h"

#include <fmt/format.h>

#include <filesystem>

#include "executor/train/records/run_directory.h"
#include "executor/train/stop_signal.h"
#include "executor/train/trainable.h"
#include "executor/worker/server.h"
#include "executor/worker/training.h"
#include "sim/scenario/resolve/one_worker.h"
#include "sim/scenario/restart.h"

namespace reckon::worker {
namespace {

/// What an elastic job may be of.
bool trains_with_fewer(const PlannedWorkload& job, int workers) {
  return job.restart && job.restart->kind == RestartKind::elastic &&
         workers < job.strategy.workers &&
         usable_workers(workers, workers_of_a_copy(job), job.restart->min_workers) == workers;
}

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
  if (me.workers != job.strategy.workers && !trains_with_fewer(job, me.workers))
    refuse(fmt::format("the plan has {} workers, this job {}", job.strategy.workers, me.workers),
           "change workload.strategy.workers, or start as many processes");
  if (!servers && me.servers > 0)
    refuse("this job has parameter servers, the strategy none", "start its workers only");
  if (me.rank < 0) refuse("an evaluator is not run", "start workers and parameter servers");
  return errors;
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
