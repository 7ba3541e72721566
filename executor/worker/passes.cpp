#include "executor/worker/passes.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "executor/data/open.h"
#include "sim/scenario/own_program.h"

namespace reckon::worker {
namespace {

/// But for what few files more or less make.
bool same_number(double samples, double planned) {
  return std::abs(samples - planned) <= 0.01 * planned;
}

/// Samples that are made up behind those that are trained on, by the same law.
class HeldOutSource final : public DataSource {
 public:
  HeldOutSource(std::unique_ptr<DataSource> all, std::int64_t trained)
      : all_(std::move(all)), trained_(trained) {}
  std::int64_t samples() const override { return all_->samples() - trained_; }
  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    all_->read(trained_ + index, batch, at);
  }

 private:
  std::unique_ptr<DataSource> all_;
  std::int64_t trained_;
};

/// The middle of each image [torchvision's references, classification: the validation recipe].
DataSpec as_validation(DataSpec data) {
  if (!data.validation.empty()) data.path = data.validation;
  if (!holds_images(data.format)) return data;
  if (data.crop != ImageCrop::none) data.crop = ImageCrop::center;
  data.flip = false;
  return data;
}

/// Where the length is said in epochs and the data has other samples than the plan counts an epoch
/// by: both, and what to do. "": it is as planned. `where`: the data's location.
std::string why_other_epochs(const PlannedWorkload& job, const DataSource& source,
                             const std::string& where) {
  const auto holds = double(source.samples()), planned = job.dataset.samples.value.v;
  if (job.epochs <= 0 || same_number(holds, planned)) return "";
  const std::string what = fmt::format(
      "{} holds {} samples, the plan's dataset {:.0f}: its {:.4g} epoch{} are {:.4g} passes over "
      "them",
      where, source.samples(), planned, job.epochs, job.epochs == 1 ? "" : "s",
      job.total_samples / holds);
  if (job.dataset.name == kGivenDataset)
    return fmt::format("{} (--set workload.dataset.samples={})", what, source.samples());
  return fmt::format("{} (workload: {{dataset: {{samples: {}, bytes_per_sample: {:.0f}B}}}})", what,
                     source.samples(), job.dataset.bytes_per_sample.value.v);
}

std::unique_ptr<DataSource> open_training(const JobOptions& options, const Job& job,
                                          const DataWatch& watch) {
  const PlannedWorkload& planned = job.plan.only_job();
  return open_samples(data_of(options, planned.data), job.directory, planned.model, job.plan.seed,
                      static_cast<std::int64_t>(planned.dataset.samples.value.v),
                      planned.zipf_exponent.value, {}, watch);
}

/// nullptr: the plan makes no evaluation passes.
std::unique_ptr<DataSource> open_validation(const JobOptions& options, const Job& job,
                                            const std::vector<std::string>& classes,
                                            const DataWatch& watch) {
  const PlannedWorkload& planned = job.plan.only_job();
  const DataSpec data = data_of(options, planned.data);
  if (!planned.evaluate_every_epochs || !has_validation_set(data)) return nullptr;
  if (has_test_set(data.format))
    return open_test_set(as_validation(data), job.directory, planned.model);
  const auto open = [&](const DataSpec& from, std::int64_t samples) {
    return open_samples(from, job.directory, planned.model, job.plan.seed, samples,
                        planned.zipf_exponent.value, classes, watch);
  };
  const auto trained = static_cast<std::int64_t>(planned.dataset.samples.value.v);
  const auto held_out = static_cast<std::int64_t>(planned.dataset.validation_samples.value.v);
  if (is_made_up(data.format))
    return std::make_unique<HeldOutSource>(open(data, trained + held_out), trained);
  return open(as_validation(data), held_out);
}

/// Where evaluation passes are others than the plan or the options say: how. "": they are not.
std::string why_other_validation(const JobOptions& options, const Job& job,
                                 const DataSource* validation) {
  const PlannedWorkload& planned = job.plan.only_job();
  const bool given = !options.validation.empty();
  if (!planned.evaluate_every_epochs)
    return given ? "--validation is not read: the plan makes no evaluation passes "
                   "(workload.evaluation and workload.data.validation)"
                 : "";
  if (validation == nullptr)
    return given ? "--validation is not read: characters of another file have other ids (format: "
                   "text)"
                 : left_out_by_own_program(job.plan);
  if (given && is_made_up(planned.data.format))
    return fmt::format("--validation is not read: samples of format {} are made up",
                       to_text(planned.data.format));
  const auto holds = double(validation->samples()),
             counted = planned.dataset.validation_samples.value.v;
  if (same_number(holds, counted)) return "";
  return fmt::format(
      "there are {} validation samples, and the forecast's evaluation passes are of {:.0f}",
      validation->samples(), counted);
}

}  // namespace

JobData open_job_data(const JobOptions& options, const Job& job, const DataWatch& watch) {
  JobData data;
  std::string wrong;
  try {
    data.training = open_training(options, job, watch);
  } catch (const DataError& e) {
    wrong = e.what();
  }
  try {
    data.validation = open_validation(
        options, job, data.training ? data.training->classes() : std::vector<std::string>{}, watch);
  } catch (const DataError& e) {
    if (wrong != e.what()) wrong += (wrong.empty() ? "" : "\n") + std::string(e.what());
  }
  if (!wrong.empty()) throw DataError(wrong);
  return data;
}

std::vector<std::string> warnings_of(const JobOptions& options, const Job& job,
                                     const JobData& data) {
  const PlannedWorkload& planned = job.plan.only_job();
  std::vector<std::string> warnings = data.training->warnings();
  if (data.validation)
    for (std::string& warning : data.validation->warnings()) warnings.push_back(std::move(warning));
  warnings.push_back(
      why_other_epochs(planned, *data.training, data_of(options, planned.data).path));
  warnings.push_back(why_other_validation(options, job, data.validation.get()));
  std::erase(warnings, "");
  return warnings;
}

}  // namespace reckon::worker
