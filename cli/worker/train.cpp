#include "cli/worker/train.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "cli/exit_code.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/version.h"
#include "executor/comm/rendezvous/job_secret.h"
#include "executor/launch/worker_ranks.h"
#include "executor/worker/compute.h"
#include "executor/worker/job.h"

namespace reckon::cli {
namespace {

struct WorkerOptions : Files, ScenarioChanges, CatalogChoice {
  bool version = false, libraries = false;
  std::optional<std::uint64_t> seed;
  bool alone = false;
  worker::JobOptions job;

  std::vector<Option> declared();
};

std::vector<Option> WorkerOptions::declared() {
  IdentityFlags& me = job.identity;
  return {
      {{"plan", "FILE", "plan of a run, or a scenario; may stand alone as well"},
       texts(files),
       true},
      {{"set", "PATH=VALUE", "change a value of the plan; may be repeated"},
       texts(overrides),
       true},
      {{"layer", "FILE", "layer over the scenario (repeatable)"}, paths(layers), true},
      {{"catalog", "DIR", "overlay of the catalogs (repeatable)"}, paths(catalogs), true},
      {{"seed", "N", "of weights, order of samples and dropout (the plan's)"}, whole(seed, 0)},
      {{"data", "PATH", "where the samples are (the plan's workload.data.path)"}, text(job.data)},
      {{"validation", "PATH",
        "where the samples of evaluation passes are (the plan's workload.data.validation)"},
       text(job.validation)},
      {{"steps", "N", "end after so many optimizer steps (the plan's)"}, whole(job.steps, 1)},
      {{"out", "DIR", "measurements, checkpoints, trained parameters (none)"}, text(job.out)},
      {{"node-dir", "DIR",
        "where this node keeps its checkpoints of workload.checkpoint.local\n"
        "                               (DIR/nodes/node-K of --out; in memory /dev/shm)"},
       text(job.node_directory)},
      {{"one-tier", "", "no checkpoints on this node, whatever workload.checkpoint.local says"},
       given(job.one_tier)},
      {{"log-records", "",
        "print measurements as JSON lines in place of writing them to --out, which may then be\n"
        "                               storage that machines share"},
       given(job.log_records)},
      {{"accept-changes", "",
        "go on from a checkpoint although settings of the training have changed since"},
       given(job.accept_changes)},
      {{"keep", "N", "complete checkpoints that are kept (2)"}, whole(job.keep, 1)},
      {{"checkpoint-steps", "N", "steps between two checkpoints (the plan's interval)"},
       whole(job.checkpoint_steps, 1)},
      {{"micro-batch", "N", "samples of one pass; the rest is accumulated (batch_per_accelerator)"},
       whole(job.micro_batch, 1)},
      {{"alone", "",
        "be one worker of the plan by itself: strategy single, batch_per_accelerator samples a "
        "step"},
       given(alone)},
      {{"phases-apart", "",
        "synchronous parameter servers: no pull before all pushes, so that each can be measured"},
       given(job.phases_apart)},
      {{"sum-directly", "",
        "workers on CPUs: no ring, each rank adds up its part of all gradients; not as forecast"},
       given(job.sum_directly)},
      {{"device", "NAME", "what computes: auto, cpu or cuda (auto)"}, word(job.device)},
      {{"threads", "N", "that compute (the machine's cores, shared by its processes)"},
       whole(job.threads, 1)},
      {{"data-threads", "N",
        "that read and decode samples ahead (workload.data.threads, else this process' cores;\n"
        "                               1 where nothing is decoded or fetched)"},
       whole(job.data_threads, 1)},
      {{"deadline", "DURATION", "until all processes of the job have come (300s)"},
       duration(job.rendezvous_deadline)},
      {{"role", "NAME", "worker, chief, ps or evaluator (TF_CONFIG, RANK)"}, text(me.role)},
      {{"rank", "N", "of this process, within its role"}, whole(me.rank, 0)},
      {{"workers", "N", "processes that compute"}, whole(me.workers, 1)},
      {{"servers", "N", "parameter servers"}, whole(me.servers, 0)},
      {{"local-rank", "N", "among the processes of this machine"}, whole(me.local_rank, 0)},
      {{"master", "HOST:PORT", "where the processes meet"}, text(me.master)},
      {{"secret-file", "FILE",
        "the job's secret, the same 64 hexadecimal digits for all its processes\n"
        "                               (RECKON_SECRET_FILE)"},
       text(job.secret_file)},
      {{"address", "HOST", "where the others reach this process"}, text(me.address)},
      {{"job", "NAME", "processes of other jobs are turned away"}, text(me.job)},
      {{"attempt", "N", "which start of the job this is"}, whole(me.attempt, 0)},
      {{"libraries", "",
        "print the shared libraries that training on a GPU loads when it needs them"},
       given(libraries)},
      {{"version", "", ""}, given(version)},
  };
}

std::string worker_help() {
  WorkerOptions options;
  std::vector<OptionText> shown = option_texts(options.declared());
  shown.pop_back();  // --version speaks for itself
  return "reckon-worker: one process of a training job, on a GPU or on CPUs.\n\n"
         "Usage: reckon-worker PLAN [options]\n\n"
         "Alone it trains the whole job. Several find each other by TF_CONFIG, by RANK, "
         "WORLD_SIZE,\n"
         "MASTER_ADDR and MASTER_PORT, as tasks of Slurm's srun, or by the options below, which "
         "win.\n"
         "`reckon run PLAN` starts and watches all processes of a job on this machine. Several "
         "need a\n"
         "secret, which `reckon run` makes: by hand (umask 077 && openssl rand -hex 32 > "
         "job.secret)\n"
         "A worker with several accelerators starts a rank for each.\n\n"
         "What a run has trained is exported and served:\n"
         "  reckon-worker export RUN MODEL   the next version of a model directory\n"
         "  reckon-worker serve MODEL        its newest version over HTTP\n\nOptions:\n" +
         describe(shown, 28) +
         "\nExit codes: 0 trained; 1 the run failed (its loss is not a number); 2 the input is "
         "wrong;\n"
         "3 the environment failed; 75 stopped on request behind a checkpoint; 76 a peer is "
         "lost.\n\n"
         "Example: reckon-worker plan.yaml --steps 100 --out runs/try\n";
}

/// The plan of a run by itself: no scenario is read, and no catalog.
worker::Job job_of_run(const WorkerOptions& options, ReadArtifact run) {
  if (!options.overrides.empty() || !options.layers.empty() || !options.catalogs.empty() ||
      options.seed)
    throw UsageError(
        "--set, --layer, --catalog and --seed go with a scenario: the plan of a run is complete");
  return worker::job_of_run(std::move(run), options.files.front());
}

worker::Job job_of_scenario(const WorkerOptions& options) {
  const std::string& file = options.files.front();
  const LoadedCatalog catalog = checked(load_catalogs(options));
  LoadedPlan loaded = checked(load_plan(file, options, catalog));
  require_one_job(loaded, "a worker's plan");
  if (options.seed) loaded.plan.seed = *options.seed;
  return {.plan = std::move(loaded.plan),
          .file = file,
          .directory = loaded.file.directory,
          .digests = {}};
}

worker::Job job_of(const WorkerOptions& options) {
  auto run = load_artifact(options.files.front());
  worker::Job job = run ? job_of_run(options, checked(std::move(*run))) : job_of_scenario(options);
  return options.alone ? worker::alone(std::move(job)) : job;
}

/// All read the secret, so it may not come from a pipe.
bool has_secret(const worker::JobOptions& options) {
  const char* named = std::getenv(JobSecret::kVariable);
  const std::filesystem::path file =
      options.secret_file.empty() && named != nullptr ? named : options.secret_file;
  if (file.empty()) return false;
  if (!std::filesystem::is_regular_file(file))
    throw UsageError(fmt::format(
        "the ranks of this worker all read the job's secret: {} has to be a file", file.string()));
  return true;
}

int start_ranks(const worker::WorkerOfRanks& worker, const worker::JobOptions& options,
                std::span<const std::string> words) {
  WorkerRanks ranks{.command = {"/proc/self/exe"},
                    .ranks = worker.ranks,
                    .first = worker.first,
                    .alone = worker.alone,
                    .has_secret = has_secret(options),
                    .records = options.log_records};
  ranks.command.insert(ranks.command.end(), words.begin(), words.end());
  return run_worker_ranks(ranks, requested_by_signals);
}

}  // namespace

int run_worker(std::span<const std::string> words) {
  WorkerOptions options;
  if (!read_words(options.declared(), options.files, words)) {
    print(worker_help());
    return kDone;
  }
  if (options.version || options.libraries) {
    print(options.version ? version_line("reckon-worker", "") + "\n" : worker::device_libraries());
    return kDone;
  }
  if (options.files.size() != 1)
    throw UsageError(options.files.empty() ? "a plan is missing" : "one plan, not several");
  worker::end_with_supervisor();
  const worker::Job job = job_of(options);
  if (const auto worker = worker::worker_of_ranks(options.job, job))
    return start_ranks(*worker, options.job, words);
  return worker::run_job(options.job, job);
}

}  // namespace reckon::cli
