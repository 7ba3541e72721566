#include "executor/worker/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/train/checkpoint/checkpoint_shard.h"
#include "executor/train/data/digest.h"
#include "executor/train/recipe/training_recipe.h"
#include "sim/scenario/artifact/artifact.h"

namespace reckon::worker {
namespace {

std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }

/// `auto` asks all ranks whether they have a device; a worker without CUDA has none, and asks
/// nobody.
std::string device_of(DeviceWish wish) {
#ifndef RECKON_WITH_CUDA
  if (wish == DeviceWish::automatic) wish = DeviceWish::cpu;
#endif
  return std::string(to_text(wish));
}

}  // namespace

std::map<std::string, std::string> settings_in_common(const JobOptions& options, const Plan& plan,
                                                      bool computes) {
  const PlannedWorkload& job = plan.only_job();
  std::map<std::string, std::string> settings;
  DataSpec data = job.data;
  data.path.clear();
  data.validation.clear();
  for (const Setting& setting : identity_of_job(plan, data).recipe)
    settings[setting.name] = setting.value;
  settings["network"] = digest_of(job.model);
  settings["restart"] = job.restart ? std::string(to_text(job.restart->kind)) : "none";
  for (const auto& [place, value] : fields_of(job.strategy)) settings["strategy." + place] = value;
  const bool evaluates =
      job.evaluate_every_epochs && has_validation_set(data_of(options, job.data));
  settings["evaluation"] =
      evaluates ? fmt::format("every {} epochs", *job.evaluate_every_epochs) : "none";
  settings["--phases-apart"] = yes_or_no(options.phases_apart);
  if (!computes) return settings;
  settings["steps"] = std::to_string(std::min(options.steps.value_or(job.steps), job.steps));
  settings["micro_batch"] =
      std::to_string(options.micro_batch.value_or(job.strategy.layout.micro_batch));
  settings["--sum-directly"] = yes_or_no(options.sum_directly);
  settings["--device"] = device_of(options.device);
  settings["--out"] = options.out.empty() ? "not given" : "given";
  settings["--log-records"] = yes_or_no(options.log_records);
  settings["checkpoints on nodes"] = yes_or_no(job.checkpoint.local && !options.one_tier);
  return settings;
}

std::map<std::string, std::string> data_in_common(const DataSource& source,
                                                  const DataSource* validation) {
  std::map<std::string, std::string> settings;
  const auto add = [&](const std::string& name, const DataSource& set) {
    if (std::string files = files_text(set); !files.empty()) settings[name] = std::move(files);
  };
  add("training data", source);
  if (validation != nullptr) add("validation data", *validation);
  return settings;
}

}  // namespace reckon::worker
