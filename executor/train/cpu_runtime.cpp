#include <algorithm>

#include "executor/train/step_runtime.h"

namespace reckon {
namespace {

class CpuRuntime final : public StepRuntime {
 public:
  CpuRuntime(const ModelGraph& model, RuntimeOptions options, Workers& workers)
      : runtime_(model, options, workers),
        values_(runtime_.layout().count),
        gradients_(runtime_.layout().count) {}

  const ParameterLayout& layout() const override { return runtime_.layout(); }
  ParameterView exchanged() override { return {values_.span(), gradients_.span()}; }
  void begin_step() override { std::ranges::fill(gradients_.span(), 0.0f); }
  double forward(const BatchView& batch, StepPosition position, bool training) override {
    return runtime_.forward(batch, values_.span(), position, training);
  }
  void backward(double scale, const std::function<void(ParameterRange)>& ready) override {
    runtime_.backward(values_.span(), gradients_.span(), scale, {.ready = ready, .leaves = {}});
  }
  ModelExchanges take_exchanged() override { return runtime_.take_exchanged(); }
  std::span<float> values() override { return values_.span(); }
  std::vector<RunningStatistics<float>> running_statistics() override {
    return runtime_.running_statistics();
  }
  void to_host() override {}
  void to_device() override {}
  Bytes activation_memory() const override { return runtime_.activation_memory(); }

 private:
  GraphRuntime<float> runtime_;
  AlignedBuffer<float> values_, gradients_;
};

}  // namespace

std::unique_ptr<StepRuntime> make_cpu_runtime(const ModelGraph& model, RuntimeOptions options,
                                              Workers& workers) {
  return std::make_unique<CpuRuntime>(model, options, workers);
}

}  // namespace reckon
