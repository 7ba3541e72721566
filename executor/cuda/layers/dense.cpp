#include <algorithm>

#include "executor/cuda/layers/runner.h"
#include "kernels/elementwise.h"
#include "kernels/window/grouped_convolution.h"
#include "kernels/window/pool.h"

// Layers that are matrix products: linear layers, and convolutions over rows of patches. Those
// whose channels are in groups are not: a kernel reads the image.
namespace reckon::cuda::run {
namespace {

/// dbias of a layer, through scratch memory of float.
template <class E>
void add_bias_gradient(const DeviceLayerMemory<E>& m, const DevicePass& pass, std::int64_t rows,
                       std::int64_t columns) {
  if (m.bias_gradient == nullptr) return;
  check(gpu::bias_gradient(m.output_gradient, rows, columns, m.bias_gradient,
                           reinterpret_cast<float*>(m.scratch), pass.stream),
        "bias gradient");
}
std::int64_t bias_scratch(std::int64_t rows, std::int64_t columns) {
  return gpu::bias_gradient_scratch(rows, columns) * static_cast<std::int64_t>(sizeof(float));
}

template <class E>
class LinearRunner : public DeviceRunner<E> {
 public:
  LinearRunner(const Linear& op, const LayerGeometry& g)
      : in_(op.in),
        out_(op.out),
        rows_(g.batch * rows_of(g.output)),
        adds_bias_(g.part.adds_bias) {}

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    const std::int64_t out = width_of(m);
    pass.products->multiply<E, E>({rows_, out, in_}, {m.inputs[0], in_}, {m.weight, in_, true},
                                  m.output, out, false, adds_bias_ ? m.bias : nullptr);
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    const E* dy = m.output_gradient;
    const std::int64_t out = width_of(m);
    if (m.weight_gradient != nullptr)
      pass.products->multiply<E, float>({out, in_, rows_}, {dy, out, true}, {m.inputs[0], in_},
                                        m.weight_gradient, in_, true);
    add_bias_gradient(m, pass, rows_, out_);
    if (m.input_gradients[0] != nullptr)
      pass.products->multiply<E, E>({rows_, in_, out}, {dy, out}, {m.weight, in_},
                                    m.input_gradients[0], in_, m.accumulate[0] != 0);
  }
  std::int64_t scratch_bytes() const override { return bias_scratch(rows_, out_); }

 private:
  /// With the columns that fill up a row of logits: the weights of those are zeros,
  /// device_layout().
  std::int64_t width_of(const DeviceLayerMemory<E>& m) const {
    return m.output_stride > 0 ? m.output_stride : out_;
  }
  std::int64_t in_, out_, rows_;
  bool adds_bias_;  // of a sum over ranks one adds it
};

gpu::WindowShape window_of(const Conv2d& op, const LayerGeometry& g) {
  return {.batch = g.batch,
          .channels = op.in,
          .height = g.inputs[0][1],
          .width = g.inputs[0][2],
          .kernel_h = op.kernel_h,
          .kernel_w = op.kernel_w,
          .stride = op.stride,
          .padding_h = op.padding,
          .padding_w = op.columns_padded()};
}

template <class E>
class GroupedConvolutionRunner : public DeviceRunner<E> {
 public:
  GroupedConvolutionRunner(const Conv2d& op, const LayerGeometry& g)
      : shape_{.window = window_of(op, g), .out = op.out, .groups = op.groups},
        rows_(g.batch * shape_.window.out_height() * shape_.window.out_width()) {}
  std::int64_t scratch_bytes() const override {
    const std::int64_t floats = gpu::grouped_convolution_scratch(shape_);
    return std::max(floats * static_cast<std::int64_t>(sizeof(float)),
                    bias_scratch(rows_, shape_.out));
  }

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::grouped_convolution_forward(shape_, m.inputs[0], m.weight, m.bias, m.output,
                                           pass.stream),
          "grouped convolution");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    add_bias_gradient(m, pass, rows_, shape_.out);
    if (m.weight_gradient != nullptr)
      check(gpu::grouped_convolution_weight_gradient(
                shape_, m.inputs[0], m.output_gradient, m.weight_gradient,
                reinterpret_cast<float*>(m.scratch), pass.stream),
            "grouped convolution gradient");
    if (m.input_gradients[0] != nullptr)
      check(gpu::grouped_convolution_input_gradient(shape_, m.output_gradient, m.weight,
                                                    m.input_gradients[0], m.accumulate[0] != 0,
                                                    pass.stream),
            "grouped convolution input gradient");
  }

 private:
  gpu::GroupedShape shape_;
  std::int64_t rows_;
};

/// Rows of patches, some samples at a time, times the weights as patches have them. Of a 1 x 1
/// convolution the image is the rows.
template <class E>
class ConvolutionRunner : public DeviceRunner<E> {
 public:
  ConvolutionRunner(const Conv2d& op, const LayerGeometry& g)
      : window_(window_of(op, g)),
        out_(op.out),
        taps_(op.kernel_h * op.kernel_w),
        // Rows that begin at 16 bytes: products over them are several times as fast.
        patch_((op.in * taps_ + 7) / 8 * 8),
        points_(window_.out_height() * window_.out_width()),
        rows_(g.batch * points_) {
    if (pointwise()) return;
    weight_ = DeviceBuffer<E>(out_ * patch_);
    weight_gradient_ = DeviceBuffer<float>(out_ * patch_);
    constexpr std::int64_t kColumns = std::int64_t{512} << 20;  // bytes of patches at a time
    const std::int64_t sample = points_ * patch_ * static_cast<std::int64_t>(sizeof(E));
    samples_ = std::clamp<std::int64_t>(kColumns / sample, 1, g.batch);
    if (samples_ > 8 && samples_ < g.batch) samples_ -= samples_ % 8;  // parts begin at 16 bytes
  }
  std::int64_t scratch_bytes() const override {
    const std::int64_t columns =
        pointwise() ? 0 : samples_ * points_ * patch_ * static_cast<std::int64_t>(sizeof(E));
    return std::max(columns, bias_scratch(rows_, out_));
  }

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (pointwise()) {
      const std::int64_t in = window_.channels;
      pass.products->multiply<E, E>({rows_, out_, in}, {m.inputs[0], in}, {m.weight, in, true},
                                    m.output, out_, false, m.bias);
      return;
    }
    check(gpu::permute_weight(out_, window_.channels, taps_, patch_, m.weight, weight_.data(),
                              pass.stream),
          "convolution weights");
    for_parts([&](const gpu::WindowShape& part, std::int64_t first) {
      const E* columns = gather(m, part, first, pass);
      pass.products->multiply<E, E>({part.batch * points_, out_, patch_}, {columns, patch_},
                                    {weight_.data(), patch_, true},
                                    m.output + first * points_ * out_, out_, false, m.bias);
    });
  }

  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    add_bias_gradient(m, pass, rows_, out_);
    if (pointwise()) {
      pointwise_backward(m, pass);
      return;
    }
    if (m.weight_gradient != nullptr) {
      for_parts([&](const gpu::WindowShape& part, std::int64_t first) {
        const E* columns = gather(m, part, first, pass);
        pass.products->multiply<E, float>({out_, patch_, part.batch * points_},
                                          {m.output_gradient + first * points_ * out_, out_, true},
                                          {columns, patch_}, weight_gradient_.data(), patch_,
                                          first > 0);
      });
      check(gpu::add_permuted_gradient(out_, window_.channels, taps_, patch_,
                                       weight_gradient_.data(), m.weight_gradient, pass.stream),
            "convolution gradient");
    }
    if (m.input_gradients[0] == nullptr) return;
    for_parts([&](const gpu::WindowShape& part, std::int64_t first) {
      E* columns = reinterpret_cast<E*>(m.scratch);
      pass.products->multiply<E, E>({part.batch * points_, patch_, out_},
                                    {m.output_gradient + first * points_ * out_, out_},
                                    {weight_.data(), patch_}, columns, patch_, false);
      check(gpu::scatter_patches(part, patch_, columns, m.input_gradients[0] + first * image(),
                                 m.accumulate[0] != 0, pass.stream),
            "convolution input gradient");
    });
  }

 private:
  bool pointwise() const {
    return taps_ == 1 && window_.stride == 1 && window_.padding_h == 0 && window_.padding_w == 0;
  }
  std::int64_t image() const { return window_.height * window_.width * window_.channels; }
  template <class Body>
  void for_parts(Body body) const {
    for (std::int64_t first = 0; first < window_.batch; first += samples_) {
      gpu::WindowShape part = window_;
      part.batch = std::min(samples_, window_.batch - first);
      body(part, first);
    }
  }
  const E* gather(const DeviceLayerMemory<E>& m, const gpu::WindowShape& part, std::int64_t first,
                  const DevicePass& pass) const {
    E* columns = reinterpret_cast<E*>(m.scratch);
    check(gpu::gather_patches(part, patch_, m.inputs[0] + first * image(), columns, pass.stream),
          "patches");
    return columns;
  }
  void pointwise_backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) {
    const std::int64_t in = window_.channels;
    const E* dy = m.output_gradient;
    if (m.weight_gradient != nullptr)
      pass.products->multiply<E, float>({out_, in, rows_}, {dy, out_, true}, {m.inputs[0], in},
                                        m.weight_gradient, in, true);
    if (m.input_gradients[0] != nullptr)
      pass.products->multiply<E, E>({rows_, in, out_}, {dy, out_}, {m.weight, in},
                                    m.input_gradients[0], in, m.accumulate[0] != 0);
  }

  gpu::WindowShape window_;
  std::int64_t out_, taps_, patch_, points_, rows_, samples_ = 1;
  DeviceBuffer<E> weight_;               // (out, patch)
  DeviceBuffer<float> weight_gradient_;  // (out, patch)
};

}  // namespace

template <class E>
DeviceRunnerPtr<E> linear(const Linear& op, const LayerGeometry& g) {
  return std::make_unique<LinearRunner<E>>(op, g);
}
template DeviceRunnerPtr<float> linear<float>(const Linear&, const LayerGeometry&);
template DeviceRunnerPtr<Bf16> linear<Bf16>(const Linear&, const LayerGeometry&);
template DeviceRunnerPtr<Half> linear<Half>(const Linear&, const LayerGeometry&);

template <class E>
DeviceRunnerPtr<E> convolution(const Conv2d& op, const LayerGeometry& g) {
  if (op.groups > 1) return std::make_unique<GroupedConvolutionRunner<E>>(op, g);
  return std::make_unique<ConvolutionRunner<E>>(op, g);
}
template DeviceRunnerPtr<float> convolution<float>(const Conv2d&, const LayerGeometry&);
template DeviceRunnerPtr<Bf16> convolution<Bf16>(const Conv2d&, const LayerGeometry&);
template DeviceRunnerPtr<Half> convolution<Half>(const Conv2d&, const LayerGeometry&);

}  // namespace reckon::cuda::run
