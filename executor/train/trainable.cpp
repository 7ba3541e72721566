#include "executor/train/trainable.h"

#include <fmt/format.h>

#include <utility>

#include "executor/train/device/layers.h"
#include "executor/train/graph_runtime.h"
#include "executor/train/parallel/rank_model.h"
#include "executor/train/pulled_tables.h"
#include "executor/train/recipe/recipe.h"
#include "sim/scenario/spec/starts_on_tpus.h"
#include "sim/step/network/collectives_cpu.h"

namespace reckon {
namespace {

struct Problems {
  Diagnostics all;
  void add(std::string what, std::string hint) {
    all.push_back({.at = {}, .what = std::move(what), .hint = std::move(hint)});
  }
};

/// What of a layout that cuts state or model the ranks of reckon-worker do not run.
void refuse_layout(const PlannedWorkload& job, Problems& problems) {
  for (Diagnostic& problem : model_parallel_problems(job.model, layout_of(job)))
    problems.all.push_back(std::move(problem));
}

/// What of the ways to go on after a loss the launcher and its workers do not know.
void refuse_restart(const PlannedWorkload& job, Problems& problems) {
  if (job.restart && job.restart->kind == RestartKind::elastic &&
      job.restart->batch == ElasticBatch::scaled)
    problems.add(
        "the ranks of an elastic job of the worker accumulate the whole global batch, and "
        "workload.restart.batch is scaled",
        "workload.restart: {kind: elastic, batch: fixed}");
  const Layout& l = job.strategy.layout;
  if (job.restart && job.restart->kind == RestartKind::elastic && l.pipeline > 1 &&
      l.zero_stage >= 2)
    problems.add(fmt::format("pipelines of the worker that exchange gradients in every pass "
                             "(zero_stage {}) need as many passes each, which an elastic job's "
                             "copies have not",
                             l.zero_stage),
                 "zero_stage: 1, or workload.restart: {kind: in_place}");
}

bool devices_train_in(Precision precision) {
  return precision == Precision::fp32 || precision == Precision::tf32 ||
         precision == Precision::bf16 || precision == Precision::fp16;
}

}  // namespace

Diagnostics cannot_train(const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  const PlannedStrategy& strategy = job.strategy;
  Problems problems{.all = cannot_run(job.model)};
  if (plan.jobs.size() > 1)
    problems.add(fmt::format("the plan has {} jobs", plan.jobs.size()),
                 "a worker runs one: give it a plan with a workload");
  if (!traits_of(strategy.kind).on_machines)
    problems.add(fmt::format("the worker does not run strategy {}", to_text(strategy.kind)),
                 kStartsOnTpus);
  if (cuts_the_model(strategy)) refuse_layout(job, problems);
  refuse_restart(job, problems);
  if (!is_trained_here(job.optimizer))
    problems.add(fmt::format("the worker does not apply optimizer {}", to_text(job.optimizer)),
                 "it applies sgd and adamw; the others are simulated");
  const bool servers = strategy.servers.has_value();
  const bool on_cpus = !computing_pools(plan).front()->accelerator;
  if (!servers && computing_ranks(strategy) > 1 && on_cpus && !runs_on_cpus(strategy.all_reduce))
    problems.add(fmt::format("workers on CPUs do not sum gradients by all_reduce: {}",
                             to_text(strategy.all_reduce)),
                 "they do by ring, or auto, which is a ring for all but small buckets");
  if (servers && (strategy.servers->colocated || strategy.servers->shards != ServerShards::even))
    problems.add("the worker's parameter servers are processes of their own that hold equal parts",
                 "colocated and shards other than even are simulated only");
  if (servers && pulls_rows(job))
    for (Diagnostic& problem : cannot_pull_rows(job.model))
      problems.all.push_back(std::move(problem));
  if (const int each = ranks_of_worker(strategy); servers && each > 1 && pulls_rows(job))
    problems.add(fmt::format("workers that have the rows of a step alone of embedding tables are "
                             "one rank, and a worker of this plan has {} accelerators",
                             each),
                 fmt::format("workload.strategy: {{workers: {}, accelerators_per_worker: 1}}, or "
                             "sparse_embeddings: false",
                             strategy.workers * each));
  if (servers && job.precision == Precision::fp16)
    problems.add(
        "parameter servers do not skip a step whose scaled gradients overflow, and the "
        "precision is fp16",
        "no server sees the whole gradient: workload.precision: fp32 or bf16, or "
        "multi_worker_mirrored");
  if (servers && job.optimizer_settings.clip_norm > 0)
    problems.add(fmt::format("parameter servers do not clip gradients, and clip_norm is {}",
                             job.optimizer_settings.clip_norm),
                 "no server sees the whole gradient: set workload.optimizer.clip_norm to 0, or use "
                 "multi_worker_mirrored");
  return std::move(problems.all);
}

Diagnostics leaves_accelerators_idle(const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  const PlannedPool& pool = *computing_pools(plan).front();
  Problems problems;
  if (!pool.accelerator) return {};
  if (pool.accelerator->kind != AcceleratorKind::gpu || pool.accelerator->vendor != "NVIDIA") {
    problems.add(fmt::format("reckon-worker trains on CPUs and NVIDIA's GPUs, and the nodes of "
                             "'{}' have {}",
                             pool.name, pool.accelerator->name),
                 pool.accelerator->kind == AcceleratorKind::tpu
                     ? kStartsOnTpus
                     : "workload.container names a program of yours that trains on them");
    return std::move(problems.all);
  }
  if (const Diagnostics layers = cannot_run_on_device(job.model); !layers.empty())
    problems.add(layers.size() == 1
                     ? layers[0].what
                     : fmt::format("{}, nor {} more layers", layers[0].what, layers.size() - 1),
                 "reckon-worker trains the model on the nodes' CPUs; a program of yours in "
                 "workload.container may do better");
  if (!devices_train_in(job.precision))
    problems.add(fmt::format("reckon-worker trains in fp32, bf16 or fp16 on GPUs, not in {}",
                             to_text(job.precision)),
                 "workload.precision: bf16");
  return std::move(problems.all);
}

bool goes_on_in_pods(const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  return job.restart && job.restart->kind != RestartKind::full && !job.strategy.servers &&
         !job.checkpoint.local;
}

Diagnostics restarts_otherwise_in_pods(const Plan& plan, bool on_nodes, WatchedPods watched) {
  const PlannedWorkload& job = plan.only_job();
  Problems problems;
  const bool would_go_on = goes_on_in_pods(plan);
  if (job.restart && job.restart->kind != RestartKind::full &&
      !(would_go_on && watched == WatchedPods::yes)) {
    const char* where = would_go_on ? "under reckon run --on kubernetes they do"
                                    : "pods without parameter servers and with checkpoints in the "
                                      "storage alone do under reckon run --on kubernetes";
    problems.add(fmt::format("pods of reckon-worker do not restart {} here: after a loss all of "
                             "them start again from the last checkpoint; {}",
                             to_text(job.restart->kind), where),
                 "--set 'workload.restart={kind: full}', or workload.container with a program of "
                 "yours that does");
  }
  if (job.checkpoint.local && !on_nodes)
    problems.add(
        "pods of reckon-worker save in the storage alone: workload.checkpoint.local needs a "
        "directory of the nodes, which outlives the pods",
        "--node-dir DIR, on each node and writable for user 65532 (/dev/shm: its memory), or leave "
        "workload.checkpoint.local out");
  return std::move(problems.all);
}

bool trains_in_watched_pods(const Plan& plan, bool on_nodes) {
  return cannot_train(plan).empty() && leaves_accelerators_idle(plan).empty() &&
         restarts_otherwise_in_pods(plan, on_nodes, WatchedPods::yes).empty();
}

}  // namespace reckon
