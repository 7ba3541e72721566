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

}  // namespace

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

std::unique_ptr<DataSource> open_validation(const JobOptions& options, const Job& job) {
  const PlannedWorkload& planned = job.plan.only_job();
  const DataSpec data = data_of(options, planned.data);
  if (!planned.evaluate_every_epochs || !has_validation_set(data)) return nullptr;
  if (has_test_set(data.format))
    return open_test_set(as_validation(data), job.directory, planned.model);
  const auto open = [&](const DataSpec& from, std::int64_t samples) {
    return open_samples(from, job.directory, planned.model, job.plan.seed, samples,
                        planned.zipf_exponent.value);
  };
  const auto trained = static_cast<std::int64_t>(planned.dataset.samples.value.v);
  const auto held_out = static_cast<std::int64_t>(planned.dataset.validation_samples.value.v);
  if (is_made_up(data.format))
    return std::make_unique<HeldOutSource>(open(data, trained + held_out), trained);
  return open(as_validation(data), held_out);
}

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

}  // namespace reckon::worker
