#include "kernels/norm.h"
#include "executor/cuda/layers/runner.h"
#include "kernels/batch_norm.h"

namespace reckon::cuda::run {
namespace {

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

template <class E>
class RowNormRunner : public DeviceRunner<E> {
 public:
  RowNormRunner(std::int64_t width, std::int64_t heads, bool centred, const LayerGeometry& g)
      : shape_{.rows = g.batch * rows_of(g.output) * heads, .width = width, .centred = centred},
        mean_(centred ? shape_.rows : 0),
        inverse_(shape_.rows) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::norm_forward(shape_, m.inputs[0], m.weight, m.bias, m.output, mean_.data(),
                            inverse_.data(), pass.stream),
          "norm forward");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (m.weight_gradient != nullptr || m.bias_gradient != nullptr)
      check(gpu::norm_backward_weight(shape_, m.inputs[0], mean_.data(), inverse_.data(),
                                      m.output_gradient, m.weight_gradient, m.bias_gradient,
                                      reinterpret_cast<float*>(m.scratch), pass.stream),
            "norm weight gradient");
    if (m.input_gradients[0] != nullptr)
      check(gpu::norm_backward_input(shape_, m.inputs[0], m.weight, mean_.data(), inverse_.data(),
                                     m.output_gradient, m.input_gradients[0], m.accumulate[0] != 0,
                                     pass.stream),
            "norm input gradient");
  }
  std::int64_t scratch_bytes() const override { return gpu::norm_scratch(shape_) * kFloat; }

 private:
  gpu::NormShape shape_;
  DeviceBuffer<float> mean_, inverse_;
};

template <class E>
class BatchNormRunner : public DeviceRunner<E> {
 public:
  BatchNormRunner(const BatchNorm& op, const LayerGeometry& g)
      : shape_{.rows = g.batch * rows_of(g.output), .channels = op.channels},
        mean_(op.channels),
        inverse_(op.channels),
        sums_(2 * op.channels),
        running_(2 * op.channels) {
    const std::vector<float> ones(static_cast<std::size_t>(op.channels), 1.0f);
    copy_to_device(running_.data() + op.channels, ones.data(), ones.size() * sizeof(float));
  }
  std::span<float> running_statistics() override { return running_.span(); }

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    float* scratch = reinterpret_cast<float*>(m.scratch);
    if (pass.training)
      check(gpu::batch_norm_measure(shape_, m.inputs[0], mean_.data(), inverse_.data(),
                                    pass.recomputing ? nullptr : running_.data(), scratch,
                                    pass.stream),
            "batch statistics");
    else
      check(gpu::batch_norm_use_running(shape_, running_.data(), mean_.data(), inverse_.data(),
                                        pass.stream),
            "running statistics");
    check(gpu::batch_norm_apply(shape_, m.inputs[0], mean_.data(), inverse_.data(), m.weight,
                                m.bias, m.output, pass.stream),
          "batch norm forward");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::batch_norm_backward(shape_, m.inputs[0], mean_.data(), inverse_.data(), m.weight,
                                   m.output_gradient, sums_.data(), m.weight_gradient,
                                   m.bias_gradient, m.input_gradients[0], m.accumulate[0] != 0,
                                   reinterpret_cast<float*>(m.scratch), pass.stream),
          "batch norm backward");
  }
  std::int64_t scratch_bytes() const override { return gpu::batch_norm_scratch(shape_) * kFloat; }

 private:
  gpu::BatchNormShape shape_;
  DeviceBuffer<float> mean_, inverse_, sums_, running_;
};

}  // namespace

template <class E>
DeviceRunnerPtr<E> row_norm(std::int64_t width, std::int64_t heads, bool centred,
                            const LayerGeometry& g) {
  return std::make_unique<RowNormRunner<E>>(width, heads, centred, g);
}
template DeviceRunnerPtr<float> row_norm<float>(std::int64_t, std::int64_t, bool,
                                                const LayerGeometry&);
template DeviceRunnerPtr<Bf16> row_norm<Bf16>(std::int64_t, std::int64_t, bool,
                                              const LayerGeometry&);
template DeviceRunnerPtr<Half> row_norm<Half>(std::int64_t, std::int64_t, bool,
                                              const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> batch_norm(const BatchNorm& op, const LayerGeometry& g) {
  return std::make_unique<BatchNormRunner<E>>(op, g);
}
template DeviceRunnerPtr<float> batch_norm<float>(const BatchNorm&, const LayerGeometry&);
template DeviceRunnerPtr<Bf16> batch_norm<Bf16>(const BatchNorm&, const LayerGeometry&);
template DeviceRunnerPtr<Half> batch_norm<Half>(const BatchNorm&, const LayerGeometry&);

}  // namespace reckon::cuda::run
