#include "executor/cuda/device_runtime.h"

#include <algorithm>

#include "executor/cuda/device_runner.h"
#include "kernels/elementwise.h"
#include "sim/base/check.h"
#include "sim/model/shapes.h"

namespace reckon::cuda {
namespace {

constexpr std::int64_t kLine = 128;  // elements: 256 bytes of 16 bits

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// By layer: elements from a row of its output to the next where it makes logits that only a loss
/// reads, so that rows begin at 16 bytes; 0 elsewhere. Vocabularies are odd (GPT-2's has 50,257
/// words), and the three products are several times as slow where the length that is not a multiple
/// of eight is anywhere in them: so the weights have rows of zeros too, device_layout().
std::vector<std::int64_t> logit_strides(const ModelGraph& model) {
  const auto layers = model.layers();
  std::vector<std::int64_t> strides(layers.size());
  std::vector<int> readers(layers.size());
  for (const Layer& layer : layers)
    for (const LayerId id : layer.inputs) ++readers[index(id)];
  for (const Layer& layer : layers) {
    if (!std::holds_alternative<SoftmaxCrossEntropy>(layer.op)) continue;
    const std::size_t made = index(layer.inputs[0]);
    const auto* linear = std::get_if<Linear>(&layers[made].op);
    // The sums of a bias gradient are over rows without gaps.
    if (linear != nullptr && !linear->bias && readers[made] == 1 && linear->out % kMatrixRows != 0)
      strides[made] = round_up(linear->out, kMatrixRows);
  }
  return strides;
}
/// For the sizes of tensors alone.
RankModel with_strides(RankModel model, const std::vector<std::int64_t>& strides) {
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (strides[i] > 0) model.layers[i].layer.output.back() = strides[i];
  return model;
}

template <class E>
class DeviceRuntime final : public StepRuntime {
 public:
  DeviceRuntime(const ModelGraph& model, RuntimeOptions options, cudaStream_t stream)
      : model_(model),
        options_(options),
        layout_(parameter_layout(model)),
        padded_(device_layout(layout_)),
        logit_strides_(logit_strides(model)),
        schedule_(make_schedule(with_strides(whole_model(model), logit_strides_), options.batch,
                                options.recompute, kLine)),
        products_(stream),
        memory_(schedule_.elements),
        rounded_(std::is_same_v<E, float> ? 0 : count_of(padded_.count)),
        values_(count_of(padded_.count)),
        gradients_(count_of(padded_.count)),
        host_(layout_.count) {
    pass_.products = &products_;
    pass_.stream = stream;
    pass_.seed = options.seed;
    prepare();
  }

  const ParameterLayout& layout() const override { return layout_; }
  ParameterView exchanged() override { return {values_.span(), gradients_.span()}; }

  void begin_step() override {
    check(cudaMemsetAsync(gradients_.data(), 0, padded_.count * sizeof(float), pass_.stream),
          "clearing gradients");
    round_weights();
  }

  double forward(const BatchView& batch, StepPosition position, bool training) override {
    if (!training) round_weights();
    pass_.training = training;
    pass_.step = position.step;
    pass_.first_sample = position.first_sample;
    set_data(batch);
    for (std::size_t t = 0; t < schedule_.forward_count; ++t) run(schedule_.actions[t]);
    std::vector<float> losses(losses_.size() * static_cast<std::size_t>(options_.batch));
    for (std::size_t k = 0; k < losses_.size(); ++k)
      check(cudaMemcpyAsync(losses.data() + k * static_cast<std::size_t>(options_.batch),
                            losses_[k].values.data(), losses_[k].values.span().size_bytes(),
                            cudaMemcpyDeviceToHost, pass_.stream),
            "reading the loss");
    check(cudaStreamSynchronize(pass_.stream), "forward pass");
    double sum = 0;
    for (std::size_t i = 0; i < losses.size(); ++i)
      sum += losses_[i / static_cast<std::size_t>(options_.batch)].weight * double{losses[i]};
    return sum / static_cast<double>(options_.batch);
  }

  void backward(double scale, const std::function<void(ParameterRange)>& ready) override {
    RECKON_CHECK(pass_.training);
    if (schedule_.gradients.back().first < 0) return;  // nothing is trained
    std::vector<std::vector<float>> slopes;            // until they are there
    for (Loss& loss : losses_) {
      slopes.emplace_back(
          static_cast<std::size_t>(options_.batch),
          static_cast<float>(scale * loss.weight / static_cast<double>(options_.batch)));
      upload(loss.slopes.data(), slopes.back());
    }
    for (std::size_t t = schedule_.forward_count; t < schedule_.actions.size(); ++t) {
      const Action& action = schedule_.actions[t];
      run(action);
      const ParameterRange range = trained_range_[action.layer];
      if (action.kind == Action::Kind::backward && range.count > 0 && ready) ready(range);
    }
    // The step's parts are what the device takes, not what queueing takes.
    check(cudaStreamSynchronize(pass_.stream), "backward pass");
  }

  std::span<float> values() override { return host_.span(); }
  std::vector<RunningStatistics<float>> running_statistics() override {
    std::vector<RunningStatistics<float>> all;
    for (std::size_t i = 0; i < runners_.size(); ++i)
      add_statistics<float>(model_.layers()[i].name, statistics_[i], all);
    return all;
  }
  void to_host() override {
    check(cudaStreamSynchronize(pass_.stream), "step");
    for_slots([](float* here, float* there, std::size_t count) {
      copy_to_host(here, there, count * sizeof(float));
    });
  }
  void to_device() override {
    for_slots([](float* here, float* there, std::size_t count) {
      copy_to_device(there, here, count * sizeof(float));
    });
  }
  std::shared_ptr<void> keep_in_place(std::vector<std::span<float>> memory) override {
    return std::make_shared<PinnedMemory>(std::move(memory));
  }
  Bytes activation_memory() const override {
    return Bytes{static_cast<double>(memory_.size()) * sizeof(E)};
  }

 private:
  struct Prepared {
    DeviceLayerMemory<E> forward, late;
    std::ptrdiff_t loss = -1;      // of losses_; -1: it is none
    bool combines_losses = false;  // which the host does
  };
  struct Loss {
    double weight = 1;  // in the model's
    DeviceBuffer<float> values, slopes, targets;
  };

  static std::int64_t count_of(std::size_t n) { return static_cast<std::int64_t>(n); }

  /// Copies every parameter slot and the statistics of every layer.
  template <class Copy>
  void for_slots(Copy copy) {
    for (std::size_t s = 0; s < layout_.slots.size(); ++s)
      copy(host_.data() + layout_.slots[s].first, values_.data() + padded_.slots[s].first,
           layout_.slots[s].count);
    for (std::size_t i = 0; i < runners_.size(); ++i)
      if (!statistics_[i].empty())
        copy(statistics_[i].data(), runners_[i]->running_statistics().data(),
             statistics_[i].size());
  }

  void prepare() {
    const auto layers = model_.layers();
    std::int64_t scratch = 0;
    for (const Layer& layer : layers) {
      runners_.push_back(make_device_runner<E>(layer, geometry_of(model_, layer, options_.batch)));
      scratch = std::max(scratch, runners_.back()->scratch_bytes());
      const bool is_input = std::holds_alternative<InputLayer>(layer.op);
      records_.emplace_back(is_input ? options_.batch * elements(layer.output) : 0);
      statistics_.emplace_back(runners_.back()->running_statistics().size());
    }
    scratch_ = DeviceBuffer<std::byte>(scratch);
    prepared_.resize(layers.size());
    trained_range_.resize(layers.size());
    find_losses();
    const auto accumulate = accumulating_inputs(whole_model(model_));
    for (std::size_t i = 0; i < layers.size(); ++i) {
      for (const bool late : {false, true}) {
        DeviceLayerMemory<E>& memory = late ? prepared_[i].late : prepared_[i].forward;
        point_to_tensors(layers[i].inputs, schedule_, i, late, memory_.data(), memory);
        memory.output_stride = logit_strides_[i];
        if (!layers[i].inputs.empty())
          memory.input_stride = logit_strides_[index(layers[i].inputs[0])];
        point_to_shared(memory, i);
        point_to_weights(memory, i);
      }
      prepared_[i].late.accumulate = accumulate[i];
    }
    // What the host reads first: the statistics as runners begin with them.
    for (std::size_t i = 0; i < runners_.size(); ++i)
      if (!statistics_[i].empty())
        copy_to_host(statistics_[i].data(), runners_[i]->running_statistics().data(),
                     statistics_[i].size() * sizeof(float));
  }

  void find_losses() {
    const std::vector<double> weights = loss_weights(model_);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      prepared_[i].combines_losses = !is_device_loss(model_.layers()[i].op);
      if (prepared_[i].combines_losses) continue;
      prepared_[i].loss = count_of(losses_.size());
      losses_.push_back({.weight = weights[i],
                         .values = DeviceBuffer<float>(options_.batch),
                         .slopes = DeviceBuffer<float>(options_.batch),
                         .targets = {}});
    }
  }

  /// What all layers share, and the numbers of the input as they came.
  void point_to_shared(DeviceLayerMemory<E>& memory, std::size_t i) {
    const Layer& layer = model_.layers()[i];
    memory.scratch = scratch_.data();
    if (const std::ptrdiff_t loss = prepared_[i].loss; loss >= 0)
      memory.losses = losses_[static_cast<std::size_t>(loss)].values.data();
    const std::size_t source = layer.inputs.empty() ? i : index(layer.inputs[0]);
    if (records_[source].size() > 0) memory.record = records_[source].data();
  }

  void point_to_weights(DeviceLayerMemory<E>& memory, std::size_t i) {
    const Layer& layer = model_.layers()[i];
    for (const ParameterSlot& slot : padded_.slots) {
      const bool owned = slot.layer == layer.id, is_bias = slot.name.ends_with(".bias");
      if (!owned && (is_bias || layer.tied_to != slot.layer)) continue;
      (is_bias ? memory.bias : memory.weight) = read_weights() + slot.first;
      if (!is_bias) memory.master = values_.data() + slot.first;
      float* gradient = layer.frozen ? nullptr : gradients_.data() + slot.first;
      (is_bias ? memory.bias_gradient : memory.weight_gradient) = gradient;
      if (!owned || !slot.trained) continue;
      ParameterRange& trained = trained_range_[i];
      if (trained.count == 0) trained.first = slot.first;
      trained.count = slot.first + slot.count - trained.first;
    }
  }

  const E* read_weights() {
    if constexpr (std::is_same_v<E, float>)
      return values_.data();
    else
      return rounded_.data();
  }
  void round_weights() {
    if constexpr (!std::is_same_v<E, float>)
      check(gpu::round_to(values_.data(), rounded_.data(), values_.size(), pass_.stream),
            "rounding weights");
  }

  void upload(float* to, std::span<const float> from) {
    check(cudaMemcpyAsync(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice, pass_.stream),
          "copying the batch");
  }

  void set_data(const BatchView& batch) {
    std::size_t input = 0;
    const auto layers = model_.layers();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::size_t source = layers[i].inputs.empty() ? i : index(layers[i].inputs[0]);
      if (std::holds_alternative<InputLayer>(layers[i].op)) {
        RECKON_CHECK(count_of(batch.inputs[input].size()) == records_[i].size());
        upload(records_[i].data(), batch.inputs[input]);
        prepared_[i].forward.record_here = batch.inputs[input++];
      }
      const std::span<const float> here = prepared_[source].forward.record_here;
      prepared_[i].forward.record_here = prepared_[i].late.record_here = here;
    }
    RECKON_CHECK(batch.targets.size() == losses_.size());
    for (std::size_t k = 0; k < losses_.size(); ++k) {
      DeviceBuffer<float>& targets = losses_[k].targets;
      if (targets.size() != count_of(batch.targets[k].size()))
        targets = DeviceBuffer<float>(count_of(batch.targets[k].size()));
      upload(targets.data(), batch.targets[k]);
    }
    if (masked_.size() != count_of(batch.masked.size()))
      masked_ = DeviceBuffer<std::int32_t>(count_of(batch.masked.size()));
    if (!batch.masked.empty())
      check(cudaMemcpyAsync(masked_.data(), batch.masked.data(), batch.masked.size_bytes(),
                            cudaMemcpyHostToDevice, pass_.stream),
            "copying the batch");
    pass_.masked = batch.masked.empty() ? nullptr : masked_.data();
  }

  void run(const Action& action) {
    Prepared& p = prepared_[action.layer];
    if (p.combines_losses) return;
    if (p.loss >= 0) {
      const Loss& loss = losses_[static_cast<std::size_t>(p.loss)];
      pass_.target = loss.targets.data();
      pass_.slopes = loss.slopes.data();
    }
    pass_.recomputing = action.kind == Action::Kind::recompute;
    if (action.kind == Action::Kind::forward)
      runners_[action.layer]->forward(p.forward, pass_);
    else if (action.kind == Action::Kind::recompute)
      runners_[action.layer]->forward(p.late, pass_);
    else
      runners_[action.layer]->backward(p.late, pass_);
  }

  const ModelGraph& model_;
  RuntimeOptions options_;
  ParameterLayout layout_, padded_;
  std::vector<std::int64_t> logit_strides_;
  Schedule schedule_;
  Products products_;
  std::vector<DeviceRunnerPtr<E>> runners_;
  std::vector<Prepared> prepared_;
  std::vector<ParameterRange> trained_range_;   // by layer, in the padded layout
  std::vector<DeviceBuffer<float>> records_;    // by layer: of input layers
  std::vector<std::vector<float>> statistics_;  // by layer, on the host
  DeviceBuffer<E> memory_, rounded_;
  DeviceBuffer<std::byte> scratch_;
  DeviceBuffer<float> values_, gradients_;
  std::vector<Loss> losses_;  // in the order of the layers
  DeviceBuffer<std::int32_t> masked_;
  AlignedBuffer<float> host_;
  DevicePass pass_;
};

}  // namespace

ParameterLayout device_layout(const ParameterLayout& layout) {
  ParameterLayout padded = layout;
  padded.count = 0;
  for (ParameterSlot& slot : padded.slots) {
    slot.first = padded.count;
    if (slot.shape.size() == 2)
      slot.count = static_cast<std::size_t>(round_up(slot.shape[0], kMatrixRows) * slot.shape[1]);
    slot.count = (slot.count + kLine - 1) / kLine * kLine;
    padded.count += slot.count;
  }
  return padded;
}

std::unique_ptr<StepRuntime> make_device_runtime(const ModelGraph& model, RuntimeOptions options,
                                                 DevicePrecision precision, cudaStream_t stream) {
  RECKON_CHECK(cannot_run(model).empty());
  RECKON_CHECK(cannot_run_on_device(model).empty());
  if (precision == DevicePrecision::bf16)
    return std::make_unique<DeviceRuntime<Bf16>>(model, options, stream);
  if (precision == DevicePrecision::fp16)
    return std::make_unique<DeviceRuntime<Half>>(model, options, stream);
  return std::make_unique<DeviceRuntime<float>>(model, options, stream);
}

}  // namespace reckon::cuda
