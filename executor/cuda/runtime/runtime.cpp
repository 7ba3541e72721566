#include "executor/cuda/runtime/runtime.h"

#include <optional>

#include "executor/train/layouts/block_walk.h"
#include "executor/train/layouts/exchange_blocks.h"

namespace reckon::cuda {
namespace {

class DeviceRuntime final : public StepRuntime {
 public:
  DeviceRuntime(std::unique_ptr<DeviceParameters> own, DeviceParameters& parameters,
                std::unique_ptr<DeviceGraph> graph)
      : own_(std::move(own)), parameters_(parameters), graph_(std::move(graph)) {}

  /// Each block's parameters come while the block before it is at work, and go after its last use.
  void gather_by(ZeroExchange& exchange, const ModelGraph& model) {
    const Schedule& schedule = graph_->schedule();
    const auto blocks = exchange_blocks(model, parameters_.layout());
    const auto uses = [&](std::size_t actions) {
      return block_uses(graph_->rank_model(), parameters_.layout(), blocks, schedule, actions);
    };
    training_ = uses(schedule.actions.size());
    evaluating_ = uses(schedule.forward_count);
    walk_.emplace(exchange);
    graph_->set_hooks({.before = [this](std::size_t action) { walk_->before(action); },
                       .after = [this](std::size_t action) { walk_->after(action); }});
  }

  const ParameterLayout& layout() const override { return parameters_.layout(); }
  ParameterView exchanged() override { return parameters_.exchanged(); }
  void begin_step() override {
    parameters_.clear_gradients();
    parameters_.changed();
  }
  double forward(const BatchView& batch, StepPosition position, bool training) override {
    if (!training) parameters_.changed();
    if (walk_) walk_->begin_pass(training ? training_ : evaluating_);
    return graph_->forward(batch, position, training);
  }
  void backward(double scale, const std::function<void(ParameterRange)>& ready) override {
    graph_->backward(scale, {.ready = ready, .leaves = {}});
  }
  ModelExchanges take_exchanged() override { return graph_->take_exchanged(); }
  std::span<float> values() override { return parameters_.host(); }
  std::vector<RunningStatistics<float>> running_statistics() override {
    return graph_->running_statistics();
  }
  void to_host() override {
    parameters_.to_host();
    graph_->statistics_to_host();
  }
  void to_device() override {
    parameters_.to_device();
    graph_->statistics_to_device();
  }
  std::shared_ptr<void> keep_in_place(std::vector<std::span<float>> memory) override {
    return std::make_shared<PinnedMemory>(std::move(memory));
  }
  Bytes activation_memory() const override { return graph_->activation_memory(); }

 private:
  std::unique_ptr<DeviceParameters> own_;
  DeviceParameters& parameters_;
  std::unique_ptr<DeviceGraph> graph_;
  std::vector<BlockUse> training_, evaluating_;
  std::optional<BlockWalk> walk_;
};

}  // namespace

std::unique_ptr<StepRuntime> make_device_runtime(const ModelGraph& model, RuntimeOptions options,
                                                 DevicePrecision precision, cudaStream_t stream) {
  const ParameterLayout layout = options.layout ? *options.layout : parameter_layout(model);
  auto own =
      std::make_unique<DeviceParameters>(layout, std::vector<ZeroBlock>(), 0, precision, stream);
  DeviceParameters& parameters = *own;
  auto graph = make_device_graph(model, options, parameters, {}, precision, stream);
  return std::make_unique<DeviceRuntime>(std::move(own), parameters, std::move(graph));
}

std::unique_ptr<StepRuntime> make_device_runtime(const ModelGraph& model,
                                                 const RuntimeOptions& options,
                                                 DeviceParameters& parameters,
                                                 const DeviceGroups& groups, ZeroExchange* gathers,
                                                 DevicePrecision precision, cudaStream_t stream) {
  auto runtime = std::make_unique<DeviceRuntime>(
      nullptr, parameters,
      make_device_graph(model, options, parameters, groups, precision, stream));
  if (gathers != nullptr) runtime->gather_by(*gathers, model);
  return runtime;
}

}  // namespace reckon::cuda
