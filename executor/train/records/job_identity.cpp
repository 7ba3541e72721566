#include <fmt/format.h>

#include "executor/train/checkpoint/checkpoint_shard.h"
#include "executor/train/data/digest.h"
#include "executor/train/parameters.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/recipe/training_recipe.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/plan.h"

namespace reckon {
namespace {

std::string schedule_text(const PlannedOptimizer& o, std::int64_t steps) {
  const std::string warmup =
      o.warmup_steps > 0 ? fmt::format("{} steps of warm-up, then ", o.warmup_steps) : "";
  switch (o.schedule) {
    case LearningRateSchedule::constant:
      break;
    case LearningRateSchedule::step:
      return fmt::format("{}times {} every {} steps", warmup, o.decay_factor, o.decay_every);
    case LearningRateSchedule::cosine:
      return fmt::format("{}cosine to {} over {} steps", warmup, o.final_fraction, steps);
  }
  return warmup + "constant";
}

std::string optimizer_text(const PlannedWorkload& job) {
  const PlannedOptimizer& o = job.optimizer_settings;
  const std::string own =
      job.optimizer == Optimizer::adamw
          ? fmt::format("beta1 {}, beta2 {}, epsilon {}", o.beta1, o.beta2, o.epsilon)
          : fmt::format("momentum {}", o.momentum);
  return fmt::format("{}, weight decay {}, clip norm {}", own, o.weight_decay, o.clip_norm);
}

std::string data_text(const DataSpec& data) {
  std::string text(to_text(data.format));
  if (!data.path.empty()) text += " " + data.path;
  if (data.crop) text += fmt::format(", crop {}", to_text(*data.crop));
  if (data.resize) text += fmt::format(", resize {}", *data.resize);
  if (data.flip) text += *data.flip ? ", flipped" : ", not flipped";
  if (data.damaged == DamagedSample::skip) text += ", damaged samples skipped";
  return text;
}

}  // namespace

CheckpointIdentity identity_of_job(const Plan& plan, const DataSpec& data,
                                   const DataSource* source) {
  const PlannedWorkload& job = plan.only_job();
  const PlannedOptimizer& o = job.optimizer_settings;
  const std::size_t parameters = parameter_layout(job.model).count;
  const std::string optimizer(to_text(job.optimizer));
  const double samples = job.dataset.samples.value.v;
  // In lockstep every rank has a part; else what rank 0 and the servers have is the job's state.
  const bool in_lockstep = job.strategy.synchronous() && job.strategy.backup_workers() == 0;
  CheckpointIdentity identity{
      .job = job.name,
      .model = fmt::format("{}, {} parameters, {}, seed {}, {} samples a step", job.model.name(),
                           parameters, optimizer, plan.seed, job.global_batch),
      .ranks = in_lockstep ? computing_ranks(job.strategy) : 1,
      .recipe = {{"model", job.model.name()},
                 {"parameters", std::to_string(parameters)},
                 {"layers", std::to_string(job.model.layers().size())},
                 {"network", digest_of(job.model)},
                 {"precision", std::string(to_text(job.precision))},
                 {"optimizer", optimizer},
                 {"optimizer_settings", optimizer_text(job)},
                 {"learning_rate", fmt::format("{}", o.learning_rate)},
                 {"schedule", schedule_text(o, job.steps)},
                 {"batch", std::to_string(job.global_batch)},
                 {"dataset", job.dataset.name},
                 {"samples", fmt::format("{:.0f}", samples)},
                 {"data", data_text(data)},
                 {"seed", std::to_string(plan.seed)}}};
  if (std::string files = source ? files_text(*source) : ""; !files.empty())
    identity.recipe.push_back({"data_files", std::move(files)});
  return identity;
}

}  // namespace reckon
