#include "executor/cuda/layers/runner.h"

#include "sim/base/check.h"
#include "sim/model/shapes.h"

namespace reckon::cuda {

template <class E>
DeviceRunnerPtr<E> make_device_runner(const Layer& layer, const LayerGeometry& g,
                                      ExpertRoute* route) {
  using Ptr = DeviceRunnerPtr<E>;
  if (g.part.exchange != TensorExchange::none) return run::tensor_exchange<E>(g);
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
          [&](const EmbeddingBag& op) -> Ptr { return run::embedding_bag<E>(op, g); },
          [&](const SelectFeatures& op) -> Ptr { return run::select_features<E>(op, g); },
          [&](const Concat&) -> Ptr { return run::concat<E>(g); },
          [&](const PairwiseDots& op) -> Ptr { return run::pairwise_dots<E>(op, g); },
          [&](const PositionEmbedding& op) -> Ptr { return run::position_embedding<E>(op, g); },
          [&](const RotaryEmbedding& op) -> Ptr { return run::rotary<E>(op, g); },
          [&](const Attention& op) -> Ptr { return run::attention<E>(op, layer.id, g); },
          [&](const ScaleBy& op) -> Ptr { return run::scale_by<E>(op, g); },
          [&](const SelectTokens& op) -> Ptr { return run::select_tokens<E>(op, g); },
          [&](const MeanSquaredError&) -> Ptr { return run::mean_squared_error<E>(g); },
          [&](const SigmoidCrossEntropy&) -> Ptr { return run::sigmoid_cross_entropy<E>(g); },
          [&](const Add&) -> Ptr { return run::add<E>(g); },
          [&](const Multiply&) -> Ptr { return run::multiply<E>(g); },
          [&](const SoftmaxCrossEntropy& op) -> Ptr {
            return run::softmax_cross_entropy<E>(op, g);
          },
          [&](const ExpertDispatch& op) -> Ptr { return run::expert_dispatch<E>(op, g, route); },
          [&](const ExpertLinear& op) -> Ptr { return run::expert_linear<E>(op, g, route); },
          [&](const ExpertCombine& op) -> Ptr { return run::expert_combine<E>(op, g, route); },
          [&](const auto&) -> Ptr {
            RECKON_CHECK(false);  // reason_not_on_device()
            return nullptr;
          }},
      layer.op);
}
template DeviceRunnerPtr<float> make_device_runner<float>(const Layer&, const LayerGeometry&,
                                                          ExpertRoute*);
template DeviceRunnerPtr<Bf16> make_device_runner<Bf16>(const Layer&, const LayerGeometry&,
                                                        ExpertRoute*);
template DeviceRunnerPtr<Half> make_device_runner<Half>(const Layer&, const LayerGeometry&,
                                                        ExpertRoute*);

}  // namespace reckon::cuda
