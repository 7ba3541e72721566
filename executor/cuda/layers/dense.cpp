#include "executor/cuda/layers/bias.h"

// Linear layers: matrix products.
namespace reckon::cuda::run {
namespace {

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

}  // namespace

template <class E>
DeviceRunnerPtr<E> linear(const Linear& op, const LayerGeometry& g) {
  return std::make_unique<LinearRunner<E>>(op, g);
}
template DeviceRunnerPtr<float> linear<float>(const Linear&, const LayerGeometry&);
template DeviceRunnerPtr<Bf16> linear<Bf16>(const Linear&, const LayerGeometry&);
template DeviceRunnerPtr<Half> linear<Half>(const Linear&, const LayerGeometry&);

}  // namespace reckon::cuda::run
