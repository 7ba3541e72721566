#include "executor/cuda/device_runner.h"

#include "sim/base/check.h"
#include "sim/model/shapes.h"

namespace reckon::cuda {

std::string reason_not_on_device(const Layer& layer, std::span<const Layer> layers) {
  const auto input = [&](std::size_t k) -> const Layer& { return layers[index(layer.inputs[k])]; };
  constexpr const char* kNone = "";
  return std::visit(
      overloaded{
          [&](const Conv2d& c) { return c.groups > 1 ? "is a grouped convolution" : kNone; },
          [&](const Dropout& d) { return d.whole_sample ? "drops whole samples" : kNone; },
          [&](const Embedding&) {
            return std::holds_alternative<InputLayer>(input(0).op) ? kNone
                                                                   : "does not read the input";
          },
          [&](const Attention& a) {
            return a.alibi ? "has ALiBi" : a.head_width > 256 ? "has heads wider than 256" : kNone;
          },
          [&](const Multiply&) {
            return input(0).output == input(1).output ? kNone : "has a gate of another shape";
          },
          [&](const Add&) {
            return input(0).output == input(1).output ? kNone : "adds a number a channel";
          },
          [&](const SoftmaxCrossEntropy&) {
            return index(layer.id) + 1 == layers.size() ? kNone : "is not the last layer";
          },
          [&](const PositionEmbedding&) { return kNone; }, [&](const InputLayer&) { return kNone; },
          [&](const Linear&) { return kNone; }, [&](const BatchNorm&) { return kNone; },
          [&](const LayerNorm&) { return kNone; }, [&](const RmsNorm&) { return kNone; },
          [&](const Activation&) { return kNone; }, [&](const Pool2d&) { return kNone; },
          [&](const GlobalAveragePool&) { return kNone; }, [&](const Flatten&) { return kNone; },
          [&](const RotaryEmbedding&) { return kNone; },
          [&](const auto&) { return "has no CUDA kernel"; }},
      layer.op);
}

template <class E>
DeviceRunnerPtr<E> make_device_runner(const Layer& layer, const LayerGeometry& g) {
  using Ptr = DeviceRunnerPtr<E>;
  return std::visit(
      overloaded{
          [&](const InputLayer&) -> Ptr { return run::input<E>(g); },
          [&](const Linear& op) -> Ptr { return run::linear<E>(op, g); },
          [&](const Conv2d& op) -> Ptr { return run::convolution<E>(op, g); },
          [&](const BatchNorm& op) -> Ptr { return run::batch_norm<E>(op, g); },
          [&](const LayerNorm& op) -> Ptr { return run::row_norm<E>(op.width, 1, true, g); },
          [&](const RmsNorm& op) -> Ptr { return run::row_norm<E>(op.width, op.heads, false, g); },
          [&](const Activation& op) -> Ptr { return run::activation<E>(op, g); },
          [&](const Pool2d& op) -> Ptr { return run::pool<E>(op, g); },
          [&](const GlobalAveragePool&) -> Ptr { return run::global_average_pool<E>(g); },
          [&](const Flatten&) -> Ptr { return run::flatten<E>(g); },
          [&](const Dropout& op) -> Ptr { return run::dropout<E>(op, layer.id, g); },
          [&](const Embedding& op) -> Ptr { return run::embedding<E>(op, g); },
          [&](const PositionEmbedding& op) -> Ptr { return run::position_embedding<E>(op, g); },
          [&](const RotaryEmbedding& op) -> Ptr { return run::rotary<E>(op, g); },
          [&](const Attention& op) -> Ptr { return run::attention<E>(op, layer.id, g); },
          [&](const Add&) -> Ptr { return run::add<E>(g); },
          [&](const Multiply&) -> Ptr { return run::multiply<E>(g); },
          [&](const SoftmaxCrossEntropy& op) -> Ptr {
            return run::softmax_cross_entropy<E>(op, g);
          },
          [&](const auto&) -> Ptr {
            RECKON_CHECK(false);  // reason_not_on_device()
            return nullptr;
          }},
      layer.op);
}
template DeviceRunnerPtr<float> make_device_runner<float>(const Layer&, const LayerGeometry&);
template DeviceRunnerPtr<Bf16> make_device_runner<Bf16>(const Layer&, const LayerGeometry&);
template DeviceRunnerPtr<Half> make_device_runner<Half>(const Layer&, const LayerGeometry&);

}  // namespace reckon::cuda
