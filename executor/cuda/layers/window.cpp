#include "executor/cuda/layers/runner.h"
#include "kernels/window/pool.h"

namespace reckon::cuda::run {
namespace {

template <class E>
class PoolRunner : public DeviceRunner<E> {
 public:
  PoolRunner(const gpu::WindowShape& window, bool largest) : window_(window), largest_(largest) {
    if (largest)
      points_ = DeviceBuffer<std::int32_t>(window.batch * window.out_height() * window.out_width() *
                                           window.channels);
  }
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(largest_
              ? gpu::max_pool_forward(window_, m.inputs[0], m.output, points_.data(), pass.stream)
              : gpu::average_pool_forward(window_, m.inputs[0], m.output, pass.stream),
          "pool");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    E* dx = m.input_gradients[0];
    if (dx == nullptr) return;
    const bool accumulate = m.accumulate[0] != 0;
    check(largest_
              ? gpu::max_pool_backward(window_, points_.data(), m.output_gradient, dx, accumulate,
                                       pass.stream)
              : gpu::average_pool_backward(window_, m.output_gradient, dx, accumulate, pass.stream),
          "pool gradient");
  }

 private:
  gpu::WindowShape window_;
  bool largest_;
  DeviceBuffer<std::int32_t> points_;
};

gpu::WindowShape image_of(const LayerGeometry& g) {
  return {.batch = g.batch,
          .channels = g.inputs[0][0],
          .height = g.inputs[0][1],
          .width = g.inputs[0][2]};
}

}  // namespace

template <class E>
DeviceRunnerPtr<E> pool(const Pool2d& op, const LayerGeometry& g) {
  gpu::WindowShape window = image_of(g);
  window.kernel_h = window.kernel_w = op.kernel;
  window.stride = op.stride;
  window.padding_h = window.padding_w = op.padding;
  return std::make_unique<PoolRunner<E>>(window, op.kind == PoolKind::max);
}
/// One window, the whole image.
template <class E>
DeviceRunnerPtr<E> global_average_pool(const LayerGeometry& g) {
  gpu::WindowShape window = image_of(g);
  window.kernel_h = window.height;
  window.kernel_w = window.width;
  return std::make_unique<PoolRunner<E>>(window, false);
}
template DeviceRunnerPtr<float> pool<float>(const Pool2d&, const LayerGeometry&);
template DeviceRunnerPtr<Bf16> pool<Bf16>(const Pool2d&, const LayerGeometry&);
template DeviceRunnerPtr<Half> pool<Half>(const Pool2d&, const LayerGeometry&);
template DeviceRunnerPtr<float> global_average_pool<float>(const LayerGeometry&);
template DeviceRunnerPtr<Bf16> global_average_pool<Bf16>(const LayerGeometry&);
template DeviceRunnerPtr<Half> global_average_pool<Half>(const LayerGeometry&);

}  // namespace reckon::cuda::run
