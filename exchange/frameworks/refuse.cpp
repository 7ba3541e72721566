#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exchange/frameworks/writers.h"
#include "sim/scenario/spec/starts_on_tpus.h"

namespace reckon::frameworks {

std::optional<EvaluationSteps> evaluation_steps(const PlannedWorkload& job) {
  if (!job.evaluate_every_epochs) return std::nullopt;
  const auto batches_of = [&](double samples) {
    return std::max<std::int64_t>(1, std::int64_t(std::ceil(samples / double(job.global_batch))));
  };
  return EvaluationSteps{
      .every = batches_of(*job.evaluate_every_epochs * job.dataset.samples.value.v),
      .batches = batches_of(job.dataset.validation_samples.value.v)};
}

void refuse_tpus(Refusals& refused, const LaunchLayout& l) {
  refused.add("cluster.pools." + l.pool->name, l.pool->accelerator->name, kStartsOnTpus);
}

void refuse_other_models(Refusals& refused, const LaunchLayout& l) {
  if (l.model) return;
  refused.add("model",
              fmt::format("{}, which is no decoder of attention and feed-forward blocks that is "
                          "trained whole",
                          l.job->model.name()),
              l.is_tpu() ? "a JAX or TensorFlow program of yours in workload.container"
                         : "reckon export deepspeed or accelerate, which take the program's own "
                           "model");
}

void refuse_steps_of_rate(Refusals& refused, const LaunchLayout& l) {
  if (l.job->optimizer_settings.schedule == LearningRateSchedule::step)
    refused.add("optimizer", "a learning rate that falls in steps", "schedule: cosine or constant");
}

std::string number_text(double value) { return fmt::format("{:.10g}", value); }

std::string header(const LaunchLayout& l, const char* version, const char* source) {
  return fmt::format("# {}: {} x {} {}, for {}\n# Names of arguments: {}\n", l.name, l.nodes,
                     l.accelerators_per_node, l.pool->accelerator->name, version, source);
}

void note_notice(LauncherFile& file, Refusals& refused, const LaunchLayout& l,
                 const char* version) {
  if (!l.saves_on_notice()) return;
  if (l.job->checkpoint.notice.stated)
    refused.add("checkpoint.on_notice", "a save when a node's end is announced",
                "on_notice: none, which the forecast then counts with");
  else
    file.left_to_program.push_back(
        fmt::format("a save on SIGTERM: {} makes none, the forecast counts on one "
                    "(--set workload.checkpoint.on_notice=none)",
                    version));
}

void note_program(LauncherFile& file, const LaunchLayout& l) {
  auto& notes = file.left_to_program;
  const ModelGraph& model = l.job->model;
  const std::string tokens = model.sample_unit() == SampleUnit::sequence
                                 ? fmt::format(", sequences of {} tokens", model.sequence_length())
                                 : "";
  notes.push_back(fmt::format("model {}{}", model.name(), tokens));
  notes.push_back(fmt::format("{} optimizer steps, seed {}", l.job->steps, l.seed));
  if (l.save_every) notes.push_back(fmt::format("a checkpoint every {} steps", *l.save_every));
  if (l.save_every && l.saves_on_notice()) notes.emplace_back("a checkpoint on SIGTERM");
}

}  // namespace reckon::frameworks
