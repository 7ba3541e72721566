#include "executor/serve/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "executor/train/checkpoint/tensor_reader.h"
#include "executor/train/parameters.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOldWeights = "model.ckpt";

bool is_loss(const LayerOp& op) {
  return std::holds_alternative<SoftmaxCrossEntropy>(op) ||
         std::holds_alternative<SigmoidCrossEntropy>(op) ||
         std::holds_alternative<MeanSquaredError>(op);
}

/// The layer that enters the first loss.
std::optional<LayerId> answer_of(const ModelGraph& network) {
  for (const Layer& layer : network.layers())
    if (is_loss(layer.op)) return layer.inputs.front();
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_served(const ModelGraph& network) {
  const Diagnostics errors = cannot_run(network);
  if (!errors.empty()) return errors.front().what;
  const SampleFormat format = sample_format(network);
  if (format.inputs.size() != 1)
    return fmt::format("{} takes {} inputs a sample, a request holds one", network.name(),
                       format.inputs.size());
  if (format.masked > 0)
    return fmt::format("{} answers for the tokens that its data has masked", network.name());
  if (!answer_of(network)) return fmt::format("{} has no loss", network.name());
  return std::nullopt;
}

ServedModel::ServedModel(ModelGraph network, const ModelVersion& version, int batch_max,
                         Workers& workers)
    : network_(std::move(network)),
      format_(sample_format(network_)),
      batch_max_(batch_max),
      version_(version.number) {
  RECKON_CHECK(batch_max >= 1);
  if (const auto reason = why_not_served(network_)) throw ModelVersionError(*reason);
  answer_ = *answer_of(network_);
  input_size_ = std::size_t(elements(format_.inputs.front().shape));
  output_size_ = std::size_t(elements(network_.layers()[index(answer_)].output));
  batch_ = SampleBatch(format_, batch_max);
  runtime_ = std::make_unique<GraphRuntime<float>>(
      network_, RuntimeOptions{.batch = batch_max, .trains = false}, workers);
  read_weights(version);
}

void ServedModel::read_weights(const ModelVersion& version) {
  if (!fs::exists(version.weights()) && fs::exists(version.directory / kOldWeights))
    throw ModelVersionError(fmt::format(
        "{} was exported by an older reckon, which this one does not read: export the run again",
        (version.directory / kOldWeights).string()));
  const ParameterLayout layout = parameter_layout(network_);
  parameters_.resize(layout.count);
  std::vector<RestoreTensor> state;
  for (const ParameterSlot& slot : layout.slots)
    state.push_back(
        {whole_tensor(slot.name, slot.shape),
         std::as_writable_bytes(std::span(parameters_).subspan(slot.first, slot.count))});
  for (const auto& kept : runtime_->running_statistics())
    state.push_back({whole_tensor(kept.name, {std::int64_t(kept.values.size())}),
                     std::as_writable_bytes(kept.values)});
  const TensorReader reader({version.weights()});
  reader.require_all(state);
  reader.read_state(state);
  for (const ParameterSlot& slot : layout.slots)
    check_finite(slot.name, std::span(parameters_).subspan(slot.first, slot.count));
  for (const auto& kept : runtime_->running_statistics()) check_finite(kept.name, kept.values);
}

/// What was not a number when it was saved would answer nobody.
void ServedModel::check_finite(std::string_view tensor, std::span<const float> values) const {
  const auto at = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (at != values.end())
    throw ModelVersionError(fmt::format("version {} of {}: number {} of '{}' is {}", version_,
                                        network_.name(), at - values.begin(), tensor,
                                        std::isnan(*at) ? "not a number" : "infinite"));
}

Bytes ServedModel::activation_memory() const { return runtime_->activation_memory(); }

std::optional<std::string> ServedModel::refuse(std::span<const float> instance) const {
  if (instance.size() != input_size_)
    return fmt::format("an instance has {} numbers, {} takes {}, shape {}", instance.size(),
                       network_.name(), input_size_, to_text(format_.inputs.front().shape));
  for (const IdRange& ids : format_.inputs.front().ids)
    for (std::int64_t k = ids.first; k < ids.first + ids.count; ++k) {
      const float id = instance[std::size_t(k)];
      const bool fits = id >= 0 && double(id) < double(ids.below) && std::floor(id) == id;
      if (!fits) return fmt::format("{} is no whole number in 0..{}", id, ids.below - 1);
    }
  return std::nullopt;
}

std::vector<std::vector<float>> ServedModel::predict(
    std::span<const std::vector<float>* const> instances) {
  const auto size = std::int64_t(instances.size());
  for (std::int64_t k = 0; k < size; ++k) {
    const std::vector<float>& instance = *instances[std::size_t(k)];
    RECKON_CHECK(instance.size() == input_size_);
    std::copy(instance.begin(), instance.end(), batch_.input(0, k).begin());
  }
  const std::span<const float> all = runtime_->predict(batch_.view(), size, parameters_, answer_);
  std::vector<std::vector<float>> answers;
  for (std::size_t k = 0; k < instances.size(); ++k) {
    const auto begin = all.begin() + std::ptrdiff_t(k * output_size_);
    answers.emplace_back(begin, begin + std::ptrdiff_t(output_size_));
  }
  return answers;
}

/// Numbers in 0..1 that are not alike, as those of images: of equal ones a processor guesses which
/// is the largest. 0 where a table is looked up.
std::vector<float> ServedModel::made_up() const {
  constexpr double kGolden = 0.6180339887498949;  // its multiples spread evenly
  std::vector<float> instance(input_size_);
  for (std::size_t k = 0; k < instance.size(); ++k)
    instance[k] = float(std::fmod(kGolden * double(k), 1.0));
  for (const IdRange& ids : format_.inputs.front().ids)
    std::fill_n(instance.begin() + ids.first, ids.count, 0.0F);
  return instance;
}

std::vector<TimedBatch> ServedModel::warm_up(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const std::vector<float> instance = made_up();
  const auto end = Clock::now() + patience;
  std::vector<TimedBatch> timed;
  for (int size = 1;; size = std::min(2 * size, batch_max_)) {
    const std::vector<const std::vector<float>*> instances(std::size_t(size), &instance);
    TimedBatch batch{size, std::chrono::nanoseconds::max()};
    for (int pass = 0; pass < kPasses && (pass == 0 || Clock::now() < end); ++pass) {
      const auto begin = Clock::now();
      predict(instances);
      batch.time = std::min<std::chrono::nanoseconds>(batch.time, Clock::now() - begin);
    }
    timed.push_back(batch);
    constexpr int kLonger = 2;  // twice the instances
    if (size == batch_max_ || Clock::now() + kLonger * batch.time > end) return timed;
  }
}

}  // namespace reckon
