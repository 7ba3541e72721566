#include "executor/worker/passes.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "executor/data/open.h"

namespace reckon::worker {
namespace {

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
  if (!holds_images(data.format) || data.crop == ImageCrop::none) return data;
  data.crop = ImageCrop::center;
  data.flip = false;
  return data;
}

}  // namespace

std::string why_other_epochs(const PlannedWorkload& job, const DataSource& source,
                             const std::string& where) {
  constexpr double kSame = 0.01;  // of the samples: what few files more or less make
  const auto holds = double(source.samples()), planned = job.dataset.samples.value.v;
  if (job.epochs <= 0 || std::abs(holds - planned) <= kSame * planned) return "";
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
  if (!planned.evaluate_every_epochs) return nullptr;
  const DataSpec data = data_of(options, planned.data);
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

}  // namespace reckon::worker
