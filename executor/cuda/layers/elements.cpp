#include "executor/cuda/layers/runner.h"
#include "executor/cuda/layers/token_blocks.h"
#include "kernels/element_loss.h"
#include "kernels/elementwise.h"
#include "kernels/gate.h"
#include "sim/base/check.h"

// Layers element by element, and those that only move numbers.
namespace reckon::cuda::run {
namespace {

gpu::Curve curve_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
      return gpu::Curve::relu;
    case ActivationKind::gelu:
      return gpu::Curve::gelu;
    case ActivationKind::silu:
      return gpu::Curve::silu;
    case ActivationKind::tanh:
      return gpu::Curve::tanh;
    case ActivationKind::sigmoid:
      break;
  }
  return gpu::Curve::sigmoid;
}

template <class E>
class ActivationRunner : public DeviceRunner<E> {
 public:
  ActivationRunner(const Activation& op, const LayerGeometry& g)
      : curve_(curve_of(op.kind)),
        of_input_(op.kind == ActivationKind::gelu || op.kind == ActivationKind::silu),
        count_(g.batch * elements(g.output)) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::activation_forward(curve_, m.inputs[0], m.output, count_, pass.stream),
          "activation");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (m.input_gradients[0] == nullptr) return;
    const E* kept = of_input_ ? m.inputs[0] : m.output;
    check(gpu::activation_backward(curve_, kept, m.output_gradient, m.input_gradients[0],
                                   m.accumulate[0] != 0, count_, pass.stream),
          "activation gradient");
  }

 private:
  gpu::Curve curve_;
  bool of_input_;
  std::int64_t count_;
};

template <class E>
class DropoutRunner : public DeviceRunner<E> {
 public:
  DropoutRunner(const Dropout& op, LayerId layer, const LayerGeometry& g)
      : rate_(op.rate),
        whole_sample_(op.whole_sample),
        layer_(layer),
        batch_(g.batch),
        size_(elements(g.output)),
        width_(features_of(g.output)),
        whole_width_(g.part.features.total > 0 ? g.part.features.total : width_),
        first_feature_(g.part.features.first),
        blocks_(token_blocks(g.part.tokens, g.batch, rows_of(g.output))) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    apply(m.inputs[0], m.output, false, pass);
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (m.input_gradients[0] != nullptr)
      apply(m.output_gradient, m.input_gradients[0], m.accumulate[0] != 0, pass);
  }

 private:
  void apply(const E* from, E* to, bool accumulate, const DevicePass& pass) const {
    if (!pass.training || rate_ == 0) {
      check(gpu::scale(from, 1.0f, to, accumulate, batch_ * size_, pass.stream), "dropout");
      return;
    }
    const DropoutStream mask =
        dropout_stream(pass.seed, pass.step, static_cast<std::uint32_t>(index(layer_)), rate_);
    for (const TokenBlock& block : blocks_) {
      const std::int64_t at = block.sample * size_ + block.row * width_;
      check(
          gpu::dropout(mask, pass.first_sample + block.sample, block.samples, block.count * width_,
                       whole_sample_, from + at, to + at, accumulate, pass.stream,
                       {.first = block.place * whole_width_ + first_feature_,
                        .columns = width_,
                        .stride = whole_width_}),
          "dropout");
    }
  }
  double rate_;
  bool whole_sample_;
  LayerId layer_;
  std::int64_t batch_, size_, width_;         // size: of a sample
  std::int64_t whole_width_, first_feature_;  // of all tensor ranks' features; of this one's
  std::vector<TokenBlock> blocks_;
};

template <class E>
class AddRunner : public DeviceRunner<E> {
 public:
  explicit AddRunner(const LayerGeometry& g) : count_(g.batch * elements(g.output)) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::add(m.inputs[0], m.inputs[1], m.output, count_, pass.stream), "sum");
    for (std::size_t k = 2; k < m.inputs.size(); ++k)
      check(gpu::add(m.output, m.inputs[k], m.output, count_, pass.stream), "sum");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    for (std::size_t k = 0; k < m.inputs.size(); ++k)
      if (E* dx = m.input_gradients[k])
        check(gpu::scale(m.output_gradient, 1.0f, dx, m.accumulate[k] != 0, count_, pass.stream),
              "sum gradient");
  }

 private:
  std::int64_t count_;
};

template <class E>
class MultiplyRunner : public DeviceRunner<E> {
 public:
  explicit MultiplyRunner(const LayerGeometry& g) : count_(g.batch * elements(g.output)) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::multiply(m.inputs[0], m.inputs[1], m.output, false, count_, pass.stream), "gate");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    for (std::size_t k = 0; k < 2; ++k)
      if (E* dx = m.input_gradients[k])
        check(gpu::multiply(m.output_gradient, m.inputs[1 - k], dx, m.accumulate[k] != 0, count_,
                            pass.stream),
              "gate gradient");
  }

 private:
  std::int64_t count_;
};

/// The second input has one number a channel of a sample, or one a row.
template <class E>
class GateRunner : public DeviceRunner<E> {
 public:
  explicit GateRunner(const LayerGeometry& g)
      : shape_{.batch = g.batch,
               .rows = rows_of(g.output),
               .channels = features_of(g.output),
               .by_row = g.output.size() != 3} {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::gate(shape_, m.inputs[0], m.inputs[1], m.output, false, pass.stream), "gate");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (E* dx = m.input_gradients[0])
      check(
          gpu::gate(shape_, m.output_gradient, m.inputs[1], dx, m.accumulate[0] != 0, pass.stream),
          "gate gradient");
    if (E* dgate = m.input_gradients[1])
      check(gpu::gate_gradient(shape_, m.inputs[0], m.output_gradient, dgate, m.accumulate[1] != 0,
                               pass.stream),
            "gate gradient");
  }

 private:
  gpu::GateShape shape_;
};

template <class E>
class ScaleByRunner : public DeviceRunner<E> {
 public:
  ScaleByRunner(const ScaleBy& op, const LayerGeometry& g)
      : factor_(static_cast<float>(op.factor)), count_(g.batch * elements(g.output)) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::scale(m.inputs[0], factor_, m.output, false, count_, pass.stream), "scale");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (E* dx = m.input_gradients[0])
      check(gpu::scale(m.output_gradient, factor_, dx, m.accumulate[0] != 0, count_, pass.stream),
            "scale gradient");
  }

 private:
  float factor_;
  std::int64_t count_;
};

template <class E>
class ElementLossRunner : public DeviceRunner<E> {
 public:
  ElementLossRunner(gpu::ElementLoss kind, const LayerGeometry& g)
      : kind_(kind), batch_(g.batch), size_(elements(g.inputs[0])) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::element_loss_forward(kind_, batch_, size_, m.inputs[0], pass.target, m.losses,
                                    pass.stream),
          "loss");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (E* dx = m.input_gradients[0])
      check(gpu::element_loss_backward(kind_, batch_, size_, m.inputs[0], pass.target, pass.slopes,
                                       dx, m.accumulate[0] != 0, pass.stream),
            "loss gradient");
  }

 private:
  gpu::ElementLoss kind_;
  std::int64_t batch_, size_;
};

template <class E>
class InputRunner : public DeviceRunner<E> {
 public:
  explicit InputRunner(const LayerGeometry& g)
      : batch_(g.batch),
        channels_(g.output.size() == 3 ? g.output[0] : 1),
        points_(elements(g.output) / channels_) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::channels_last(m.record, m.output, batch_, channels_, points_, false, pass.stream),
          "input");
  }
  void backward(const DeviceLayerMemory<E>&, const DevicePass&) override {}

 private:
  std::int64_t batch_, channels_, points_;
};

/// Channels to the front again, as the catalogue has them.
template <class E>
class FlattenRunner : public DeviceRunner<E> {
 public:
  explicit FlattenRunner(const LayerGeometry& g)
      : batch_(g.batch),
        channels_(g.inputs[0].size() == 3 ? g.inputs[0][0] : 1),
        points_(elements(g.output) / channels_) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::channels_last(m.inputs[0], m.output, batch_, points_, channels_, false, pass.stream),
          "flatten");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (m.input_gradients[0] != nullptr)
      check(gpu::channels_last(m.output_gradient, m.input_gradients[0], batch_, channels_, points_,
                               m.accumulate[0] != 0, pass.stream),
            "flatten gradient");
  }

 private:
  std::int64_t batch_, channels_, points_;
};

}  // namespace

template <class E>
DeviceRunnerPtr<E> activation(const Activation& op, const LayerGeometry& g) {
  return std::make_unique<ActivationRunner<E>>(op, g);
}
template <class E>
DeviceRunnerPtr<E> dropout(const Dropout& op, LayerId layer, const LayerGeometry& g) {
  return std::make_unique<DropoutRunner<E>>(op, layer, g);
}
template <class E>
DeviceRunnerPtr<E> add(const LayerGeometry& g) {
  return std::make_unique<AddRunner<E>>(g);
}
template <class E>
DeviceRunnerPtr<E> multiply(const LayerGeometry& g) {
  if (g.inputs[1] != g.output) return std::make_unique<GateRunner<E>>(g);
  return std::make_unique<MultiplyRunner<E>>(g);
}
template <class E>
DeviceRunnerPtr<E> scale_by(const ScaleBy& op, const LayerGeometry& g) {
  return std::make_unique<ScaleByRunner<E>>(op, g);
}
template <class E>
DeviceRunnerPtr<E> mean_squared_error(const LayerGeometry& g) {
  return std::make_unique<ElementLossRunner<E>>(gpu::ElementLoss::squared, g);
}
template <class E>
DeviceRunnerPtr<E> sigmoid_cross_entropy(const LayerGeometry& g) {
  return std::make_unique<ElementLossRunner<E>>(gpu::ElementLoss::logistic, g);
}
template <class E>
DeviceRunnerPtr<E> input(const LayerGeometry& g) {
  return std::make_unique<InputRunner<E>>(g);
}
template <class E>
DeviceRunnerPtr<E> flatten(const LayerGeometry& g) {
  return std::make_unique<FlattenRunner<E>>(g);
}

#define RECKON_RUN_ELEMENTS_FOR(E)                                                       \
  template DeviceRunnerPtr<E> activation<E>(const Activation&, const LayerGeometry&);    \
  template DeviceRunnerPtr<E> dropout<E>(const Dropout&, LayerId, const LayerGeometry&); \
  template DeviceRunnerPtr<E> add<E>(const LayerGeometry&);                              \
  template DeviceRunnerPtr<E> multiply<E>(const LayerGeometry&);                         \
  template DeviceRunnerPtr<E> scale_by<E>(const ScaleBy&, const LayerGeometry&);         \
  template DeviceRunnerPtr<E> mean_squared_error<E>(const LayerGeometry&);               \
  template DeviceRunnerPtr<E> sigmoid_cross_entropy<E>(const LayerGeometry&);            \
  template DeviceRunnerPtr<E> input<E>(const LayerGeometry&);                            \
  template DeviceRunnerPtr<E> flatten<E>(const LayerGeometry&)
RECKON_RUN_ELEMENTS_FOR(float);
RECKON_RUN_ELEMENTS_FOR(Bf16);
RECKON_RUN_ELEMENTS_FOR(Half);

}  // namespace reckon::cuda::run
