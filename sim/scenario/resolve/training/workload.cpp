#include <cmath>

#include <fmt/format.h>

#include "sim/base/text/names_like.h"
#include "sim/catalog/convergence_laws.h"
#include "sim/scenario/resolve/draft.h"

// Dataset, length, optimizer and checkpoint of the job.
namespace reckon::planning {
namespace {

std::optional<Dataset> resolve_dataset(Draft& draft, const WorkloadSpec& workload,
                                       const ModelGraph* model) {
  if (!workload.dataset) {
    draft.error("workload", "the workload has no dataset",
                "dataset: imagenet, or {samples: 1281167, bytes_per_sample: 110kB}");
    return std::nullopt;
  }
  if (const auto* given = std::get_if<DatasetInline>(&*workload.dataset)) {
    Dataset dataset;
    dataset.name = kGivenDataset;
    dataset.samples = Fact<Samples>{Samples{given->samples}};
    dataset.bytes_per_sample = Fact<Bytes>{given->bytes_per_sample};
    dataset.decode_cpu_seconds = Fact<double>{given->decode.count()};
    dataset.validation_samples = Fact<Samples>{Samples{given->validation_samples}};
    if (model != nullptr) dataset.unit = model->sample_unit();
    return dataset;
  }
  const std::string& name = std::get<DatasetByName>(*workload.dataset).name;
  const Dataset* dataset = draft.catalog.find_dataset(name);
  std::vector<std::string> names;
  for (const Dataset& d : draft.catalog.datasets) names.push_back(d.name);
  if (dataset == nullptr) {
    draft.error("workload.dataset",
                fmt::format("unknown dataset '{}'{}", name, did_you_mean(name, names)),
                names_like(name, names, "datasets in the catalog", "reckon catalog list datasets") +
                    "; or {samples: 1281167, bytes_per_sample: 110kB}");
    return std::nullopt;
  }
  if (model != nullptr && dataset->unit != model->sample_unit()) {
    draft.error("workload.dataset",
                fmt::format("dataset {} holds {}s, model {} reads {}s", dataset->name,
                            to_text(dataset->unit), model->name(), to_text(model->sample_unit())));
    return std::nullopt;
  }
  return *dataset;
}

std::optional<Optimizer> resolve_optimizer(Draft& draft, const std::string& name, SampleUnit unit) {
  if (name.empty()) return default_optimizer(unit);
  if (const auto known = from_text<Optimizer>(name)) {
    if (!is_trained_here(*known) && traits_of(draft.scenario().workload->strategy.kind).servers)
      draft.error("workload.optimizer",
                  fmt::format("parameter servers do not apply optimizer {}", name),
                  "they apply sgd and adamw");
    return known;
  }
  const std::vector<std::string> names = texts_of<Optimizer>();
  draft.error("workload.optimizer",
              fmt::format("unknown optimizer '{}'{}", name, did_you_mean(name, names)),
              fmt::format("optimizers: {}; sgd is with momentum", join(names, ", ")));
  return std::nullopt;
}

void resolve_checkpoint(Draft& draft, PlannedWorkload& job,
                        const std::optional<CheckpointSpec>& spec) {
  PlannedCheckpoint& checkpoint = job.checkpoint;
  if (spec) {
    checkpoint.mode = spec->mode;
    checkpoint.interval = spec->interval;
    checkpoint.save_mode = spec->save_mode;
    checkpoint.notice.stated = spec->on_notice.has_value();
  }
  // Ours saves when it is told to stop; a program that nobody spoke for is ended by the signal.
  const bool own = draft.scenario().workload->container.has_value();
  checkpoint.notice.own_program = own;
  checkpoint.notice.policy =
      (spec ? spec->on_notice : std::nullopt).value_or(own ? OnNotice::none : OnNotice::save);
  checkpoint.notice.between_steps = true;
  const std::string given = spec ? spec->storage : "";
  const Storage* storage = given.empty() ? nullptr : draft.catalog.find_storage(given);
  std::vector<std::string> names;
  for (const Storage& s : draft.catalog.storages) {
    if (s.provider != draft.plan.provider) continue;
    names.push_back(s.name);
    if (given.empty() && s.is_default) storage = &s;
  }
  if (storage != nullptr && storage->provider != draft.plan.provider) storage = nullptr;
  if (storage != nullptr) {
    checkpoint.storage = *storage;
    return;
  }
  const std::string provider{to_text(draft.plan.provider)};
  if (!given.empty())
    draft.error(
        "workload.checkpoint.storage",
        fmt::format("unknown storage '{}' of {}{}", given, provider, did_you_mean(given, names)),
        fmt::format("storages of {} in the catalog: {}", provider, join(names, ", ")));
  else if (checkpoint.mode != CheckpointSpec::Mode::none)
    draft.error(spec ? "workload.checkpoint" : "workload",
                fmt::format("the catalog has no storage of {} for checkpoints", provider),
                "checkpoint: {interval: none}, or add a storage to a catalog of your own");
}

void resolve_evaluations(Draft& draft, PlannedWorkload& job, const WorkloadSpec& workload) {
  if (!workload.evaluate_every_epochs) return;
  if (job.dataset.validation_samples.value.v <= 0) {
    draft.error("workload.evaluation",
                fmt::format("dataset {} has no validation set to evaluate on", job.dataset.name),
                job.dataset.name == kGivenDataset ? "dataset: {validation_samples: 50000}"
                                                  : "leave evaluation out");
    return;
  }
  job.evaluate_every_epochs = workload.evaluate_every_epochs;
}

std::string target_text(const Convergence& law) {
  const bool scratch = law.starts_from == kFromScratch;
  return fmt::format("{{to_accuracy: {:.1f}%{}}}", 100 * law.accuracy,
                     scratch ? "" : ", starts_from: " + law.starts_from);
}

/// The law of runs like this one; nullopt: there is none, and an error says what is known.
std::optional<Convergence> law_for(Draft& draft, const PlannedWorkload& job,
                                   const TrainLength& train) {
  const auto refuse = [&](std::string what, std::string hint) {
    draft.error("workload.train", std::move(what), std::move(hint));
    return std::nullopt;
  };
  const std::string length = "give the length instead: train: {epochs: 90}";
  if (const auto& tuned = draft.scenario().workload->finetune)
    return refuse(
        fmt::format("published runs to an accuracy train the whole model; how long {} takes "
                    "is not known",
                    tuned->method),
        length);
  constexpr double kSameTarget = 1e-6;
  const std::string start =
      train.starts_from.empty() ? std::string(kFromScratch) : train.starts_from;
  std::vector<std::string> known;
  std::optional<Convergence> other_start, other_length;
  for (Convergence& law : draft.catalog.convergence_of(job.model.name(), job.dataset.name)) {
    known.push_back(target_text(law));
    if (std::abs(law.accuracy - train.amount) > kSameTarget) continue;
    const bool same_length =
        law.sequence_length == 0 || law.sequence_length == job.model.sequence_length();
    if (law.starts_from != start)
      other_start = std::move(law);
    else if (!same_length)
      other_length = std::move(law);
    else
      return std::move(law);
  }
  if (other_length)
    return refuse(
        fmt::format("the published runs of {} to {:.1f} % read sequences of {} tokens in the mean, "
                    "this one reads {}",
                    job.model.name(), 100 * train.amount, other_length->sequence_length,
                    job.model.sequence_length()),
        fmt::format("sequence_length: {}, where this one pads no more than they; or {}",
                    other_length->sequence_length, length));
  if (other_start)
    return refuse(
        fmt::format("the published runs of {} to {:.1f} % start from {}, not from {}",
                    job.model.name(), 100 * train.amount, other_start->starts_from, start),
        fmt::format("train: {}, where that is what this one starts from; or {}",
                    target_text(*other_start), length));
  return refuse(fmt::format("how long {} on {} takes to {:.1f} % is not known", job.model.name(),
                            job.dataset.name, 100 * train.amount),
                known.empty() ? length : "known for it: train: " + join(known, ", "));
}

/// False: nobody has published what it takes, and an error says what is known.
bool resolve_target(Draft& draft, PlannedWorkload& job, const TrainLength& train) {
  job.convergence = law_for(draft, job, train);
  if (!job.convergence) return false;
  const Convergence& law = *job.convergence;
  job.samples_factor = spread_of(law);
  if (!is_measured_at(law, job.global_batch)) {
    const bool above = job.global_batch > law.largest_batch;
    draft.warn(
        fmt::format("a global batch of {} is {} than any that is known to reach {:.1f} % ({})",
                    job.global_batch, above ? "larger" : "smaller", 100 * train.amount,
                    above ? law.largest_batch : law.smallest_batch));
  }
  if (!job.strategy.synchronous())
    draft.warn(
        fmt::format("the samples to {:.1f} % are those of synchronous runs, changed by a law of "
                    "delayed updates; no published run of asynchronous servers confirms it, and "
                    "without a bound of staleness some never get there",
                    100 * train.amount));
  return true;
}

void resolve_train(Draft& draft, PlannedWorkload& job, const TrainLength& train) {
  switch (train.unit) {
    case TrainLength::Unit::epochs:
      job.epochs = train.amount;
      job.total_samples = train.amount * job.dataset.samples.value.v;
      break;
    case TrainLength::Unit::samples:
      job.total_samples = train.amount;
      break;
    case TrainLength::Unit::steps:
      break;  // as many samples as these have
    case TrainLength::Unit::tokens:
      if (job.model.sample_unit() != SampleUnit::sequence)
        draft.error("workload.train",
                    fmt::format("model {} reads {}s, not tokens", job.model.name(),
                                to_text(job.model.sample_unit())),
                    "train: {epochs: 90}");
      job.total_samples = train.amount / double(job.model.sequence_length());
      break;
    case TrainLength::Unit::to_accuracy:
      if (!resolve_target(draft, job, train)) return;
      break;
  }
  take_batch(job, train, job.global_batch);
  constexpr double kMostSteps = 1e12;
  if (!(job.total_samples / double(job.global_batch) >= 1e-9) || double(job.steps) > kMostSteps)
    draft.error(
        "workload.train",
        fmt::format("the training has {:.3g} steps", job.total_samples / double(job.global_batch)),
        "between 1 and 1e12 optimizer steps can be simulated");
}

}  // namespace

void resolve_workload(Draft& draft) {
  const WorkloadSpec& workload = *draft.scenario().workload;
  PlannedWorkload job;
  job.name = draft.plan.name;
  std::optional<ModelGraph> model = resolve_model(draft, *draft.use);
  if (model) model = resolve_finetune(draft, workload, std::move(*model));
  const std::optional<Dataset> dataset =
      resolve_dataset(draft, workload, model ? &*model : nullptr);
  resolve_checkpoint(draft, job, workload.checkpoint);
  const auto optimizer = resolve_optimizer(draft, workload.optimizer,
                                           model ? model->sample_unit() : SampleUnit::image);
  if (!workload.train)
    draft.error("workload", "the workload does not say how long to train", "train: {epochs: 90}");
  if (model) job.model = std::move(*model);
  if (dataset) job.dataset = *dataset;
  if (optimizer) job.optimizer = *optimizer;
  job.data = workload.data.value_or(DataSpec{});
  draft.workload_known = model.has_value() && dataset.has_value();
  draft.plan.jobs.push_back(std::move(job));
}

void take_batch(PlannedWorkload& job, const TrainLength& train, std::int64_t global_batch) {
  if (train.unit == TrainLength::Unit::steps)
    job.total_samples = train.amount * double(global_batch);
  change_batch(job, global_batch);
}

void resolve_length(Draft& draft, PlannedWorkload& job) {
  const WorkloadSpec& workload = *draft.scenario().workload;
  if (!draft.workload_known || !workload.train) return;
  resolve_evaluations(draft, job, workload);
  resolve_train(draft, job, *workload.train);
  resolve_optimizer_settings(job, workload.optimizer_settings);
}

}  // namespace reckon::planning
