#include <algorithm>

#include "executor/cuda/layers/bias.h"
#include "kernels/window/convolution.h"
#include "kernels/window/grouped_convolution.h"
#include "kernels/window/pool.h"
#include "sim/base/check.h"

// Convolutions. Those whose channels are in groups read the image, element by element; of 1 x 1
// ones the image is a matrix; those of 16-bit types with few output channels multiply patches that
// are never written; the others write rows of patches, and multiply those.
namespace reckon::cuda::run {
namespace {

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

/// The image is the rows of patches.
bool is_pointwise(const gpu::WindowShape& w) {
  return w.kernel_h * w.kernel_w == 1 && w.stride == 1 && w.padding_h == 0 && w.padding_w == 0;
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

/// Where patches need not be written. Derived, not measured: a row of patches has K elements of two
/// bytes, which are written and read again, 4 K bytes; its product with N output channels is 2 K N
/// FLOP. At 4.8 TB/s (H200), and the 0.6 of cuBLASLt's 990 TFLOP/s (wgmma) that mma.sync reaches,
/// the patches alone take as long as the product by mma.sync where N = 2 x 594 / 4.8 = 250; above
/// it the faster product gains on them. The gradients have the same K and N: the weights' reads
/// patches, the input's product makes rows of K elements from N. (With fewer than 64 input channels
/// the kernel of the input's gradient multiplies zeros too, which the first layer, of few, has no
/// use for.) The next run on a device decides: tests/gpu/run times both.
bool goes_without_patches(const Conv2d& op, const LayerGeometry& g) {
  constexpr std::int64_t kMostOut = 256;
  return !is_pointwise(window_of(op, g)) && op.out <= kMostOut &&
         gpu::implicit_convolution_takes({window_of(op, g), op.out});
}

/// Patches times weights, of which only tiles are made, and in shared memory.
template <class E>
class ImplicitConvolutionRunner : public DeviceRunner<E> {
 public:
  ImplicitConvolutionRunner(const Conv2d& op, const LayerGeometry& g)
      : shape_{.window = window_of(op, g), .out = op.out},
        rows_(g.batch * shape_.window.out_height() * shape_.window.out_width()),
        weight_(op.out * shape_.patch()) {}
  std::int64_t scratch_bytes() const override {
    const std::int64_t floats = gpu::convolution_scratch(shape_);
    return std::max(floats * static_cast<std::int64_t>(sizeof(float)),
                    bias_scratch(rows_, shape_.out));
  }

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::permute_weight(shape_.out, shape_.window.channels, shape_.points(), shape_.patch(),
                              m.weight, weight_.data(), pass.stream),
          "convolution weights");
    check(gpu::convolution_forward<E>(shape_, m.inputs[0], weight_.data(), m.bias, m.output,
                                      pass.stream),
          "convolution");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    add_bias_gradient(m, pass, rows_, shape_.out);
    if (m.weight_gradient != nullptr)
      check(gpu::convolution_weight_gradient(shape_, m.inputs[0], m.output_gradient,
                                             m.weight_gradient, reinterpret_cast<float*>(m.scratch),
                                             pass.stream),
            "convolution gradient");
    if (m.input_gradients[0] != nullptr)
      check(gpu::convolution_input_gradient<E>(shape_, m.output_gradient, weight_.data(),
                                               m.input_gradients[0], m.accumulate[0] != 0,
                                               pass.stream),
            "convolution input gradient");
  }

 private:
  gpu::ConvolutionShape shape_;
  std::int64_t rows_;
  DeviceBuffer<E> weight_;  // (out, patch)
};

/// Rows of patches, some samples at a time, times the weights as patches have them. Of a 1 x 1
/// convolution the image is the rows.
template <class E>
class PatchesRunner : public DeviceRunner<E> {
 public:
  PatchesRunner(const Conv2d& op, const LayerGeometry& g)
      : window_(window_of(op, g)),
        out_(op.out),
        taps_(op.kernel_h * op.kernel_w),
        // Rows that begin at 16 bytes: products over them are several times as fast.
        patch_(gpu::ConvolutionShape{window_, op.out}.patch()),
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
  bool pointwise() const { return is_pointwise(window_); }
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
DeviceRunnerPtr<E> convolution(const Conv2d& op, const LayerGeometry& g, Patches patches) {
  if (op.groups > 1) return std::make_unique<GroupedConvolutionRunner<E>>(op, g);
  if constexpr (sizeof(E) == 2)
    if (patches == Patches::unwritten ||
        (patches == Patches::as_expected && goes_without_patches(op, g)))
      return std::make_unique<ImplicitConvolutionRunner<E>>(op, g);
  RECKON_CHECK(patches != Patches::unwritten);
  return std::make_unique<PatchesRunner<E>>(op, g);
}
template DeviceRunnerPtr<float> convolution<float>(const Conv2d&, const LayerGeometry&, Patches);
template DeviceRunnerPtr<Bf16> convolution<Bf16>(const Conv2d&, const LayerGeometry&, Patches);
template DeviceRunnerPtr<Half> convolution<Half>(const Conv2d&, const LayerGeometry&, Patches);

}  // namespace reckon::cuda::run
