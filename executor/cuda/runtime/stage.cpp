#include "executor/cuda/runtime/stage.h"

#include <utility>

#include "kernels/elementwise.h"

namespace reckon::cuda {
namespace {

class DevicePart final : public PartRuntime {
 public:
  explicit DevicePart(std::unique_ptr<DeviceGraph> graph) : graph_(std::move(graph)) {}

  const Schedule& schedule() const override { return graph_->schedule(); }
  const RankModel& rank_model() const override { return graph_->rank_model(); }
  void set_hooks(ActionHooks hooks) override { graph_->set_hooks(std::move(hooks)); }
  double forward(const BatchView& batch, StepPosition position, bool training) override {
    return graph_->forward(batch, position, training);
  }
  void backward(double scale, const GradientTaker& taker) override {
    graph_->backward(scale, taker);
  }
  Crossing crossing_in() override { return graph_->crossing_in(); }
  Crossing crossing_out() override { return graph_->crossing_out(); }
  std::vector<RunningStatistics<float>> running_statistics() override {
    return graph_->running_statistics();
  }
  ModelExchanges take_exchanged() override { return graph_->take_exchanged(); }
  Bytes activation_memory() const override { return graph_->activation_memory(); }

 private:
  std::unique_ptr<DeviceGraph> graph_;
};

class DeviceStage final : public StageCompute {
 public:
  DeviceStage(const ModelGraph& model, DeviceParameters& parameters, const DeviceGroups& groups,
              DevicePrecision precision, cudaStream_t stream)
      : model_(model),
        parameters_(parameters),
        groups_(groups),
        precision_(precision),
        stream_(stream) {}

  std::unique_ptr<PartRuntime> make_part(const RuntimeOptions& options) override {
    return std::make_unique<DevicePart>(
        make_device_graph(model_, options, parameters_, groups_, precision_, stream_));
  }
  const ParameterLayout& layout() const override { return parameters_.layout(); }
  const ParameterLayout& exchanged_layout() const override { return parameters_.padded(); }
  ParameterView exchanged() override { return parameters_.exchanged(); }
  void begin_step() override {
    parameters_.clear_gradients();
    parameters_.changed();
  }
  std::span<const float> value(std::size_t slot) override {
    here_.resize(parameters_.layout().slots[slot].count);
    parameters_.fetch(slot, here_);
    return here_;
  }
  void set_value(std::size_t slot, std::span<const float> value) override {
    parameters_.set(slot, value);
  }
  std::span<const float> gradient(std::size_t slot) override {
    const float* there = parameters_.gradient(slot);
    here_.resize(parameters_.layout().slots[slot].count);
    check(cudaStreamSynchronize(stream_), "step");
    copy_to_host(here_.data(), there, here_.size() * sizeof(float));
    return here_;
  }
  void add_gradient(std::size_t slot, std::span<const float> summand) override {
    const auto count = static_cast<std::int64_t>(summand.size());
    if (summand_.size() < count) summand_ = DeviceBuffer<float>(count);
    check(cudaStreamSynchronize(stream_), "gradients");
    copy_to_device(summand_.data(), summand.data(), summand.size_bytes());
    float* sum = parameters_.gradient(slot);
    check(gpu::add<float>(sum, summand_.data(), sum, count, stream_), "sum of gradients");
  }
  std::span<float> values() override { return parameters_.host(); }
  void to_host() override { parameters_.to_host(); }
  void to_device() override { parameters_.to_device(); }

 private:
  const ModelGraph& model_;
  DeviceParameters& parameters_;
  const DeviceGroups groups_;
  const DevicePrecision precision_;
  cudaStream_t stream_;
  std::vector<float> here_;
  DeviceBuffer<float> summand_;
};

}  // namespace

std::unique_ptr<StageCompute> make_device_stage(const ModelGraph& model,
                                                DeviceParameters& parameters,
                                                const DeviceGroups& groups,
                                                DevicePrecision precision, cudaStream_t stream) {
  return std::make_unique<DeviceStage>(model, parameters, groups, precision, stream);
}

}  // namespace reckon::cuda
