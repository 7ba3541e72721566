#include "executor/train/layers/layer_runner.h"

#include "executor/train/layers/factories.h"
#include "sim/base/check.h"
#include "sim/model/shapes.h"

namespace reckon {

LayerGeometry geometry_of(const ModelGraph& model, const Layer& layer, std::int64_t batch) {
  LayerGeometry g{.batch = batch, .inputs = {}, .output = layer.output};
  for (const LayerId input : layer.inputs) g.inputs.push_back(model.layers()[index(input)].output);
  return g;
}

LayerGeometry geometry_of(const RankModel& model, const RankLayer& layer, std::int64_t batch) {
  LayerGeometry g{.batch = batch, .inputs = {}, .output = layer.layer.output, .part = layer.part};
  for (const LayerId input : layer.layer.inputs)
    g.inputs.push_back(model.layers[index(input)].layer.output);
  return g;
}

template <class T>
RunnerPtr<T> make_runner(const Layer& layer, const LayerGeometry& g) {
  using Ptr = RunnerPtr<T>;
  if (g.part.exchange != TensorExchange::none) return run::tensor_exchange<T>(g);
  return std::visit(
      overloaded{
          [&](const InputLayer&) -> Ptr { return run::input<T>(g); },
          [&](const Linear& op) -> Ptr { return run::linear<T>(op, g); },
          [&](const Conv2d& op) -> Ptr { return run::convolution<T>(op, g); },
          [&](const BatchNorm& op) -> Ptr { return run::batch_norm<T>(op, g); },
          [&](const LayerNorm& op) -> Ptr { return run::layer_norm<T>(op, g); },
          [&](const RmsNorm& op) -> Ptr { return run::rms_norm<T>(op, g); },
          [&](const Activation& op) -> Ptr { return run::activation<T>(op, g); },
          [&](const Pool2d& op) -> Ptr { return run::pool<T>(op, g); },
          [&](const GlobalAveragePool&) -> Ptr { return run::global_average_pool<T>(g); },
          [&](const Flatten&) -> Ptr { return run::flatten<T>(g); },
          [&](const Dropout& op) -> Ptr { return run::dropout<T>(op, layer.id, g); },
          [&](const Embedding& op) -> Ptr { return run::embedding<T>(op, g); },
          [&](const PositionEmbedding& op) -> Ptr { return run::position_embedding<T>(op, g); },
          [&](const RotaryEmbedding& op) -> Ptr { return run::rotary<T>(op, g); },
          [&](const Attention& op) -> Ptr { return run::attention<T>(op, layer.id, g); },
          [&](const SelectTokens& op) -> Ptr { return run::select_tokens<T>(op, g); },
          [&](const Add&) -> Ptr { return run::add<T>(g); },
          [&](const Multiply&) -> Ptr { return run::multiply<T>(g); },
          [&](const SoftmaxCrossEntropy& op) -> Ptr {
            return run::softmax_cross_entropy<T>(op, g);
          },
          [&](const SinusoidalPositions& op) -> Ptr { return run::sinusoidal<T>(op, g); },
          [&](const ClassToken& op) -> Ptr { return run::class_token<T>(op, g); },
          [&](const ImageTokens&) -> Ptr { return run::image_tokens<T>(g); },
          [&](const EmbeddingBag& op) -> Ptr { return run::embedding_bag<T>(op, g); },
          [&](const SelectFeatures& op) -> Ptr { return run::select_features<T>(op, g); },
          [&](const PairwiseDots& op) -> Ptr { return run::pairwise_dots<T>(op, g); },
          [&](const ExpertDispatch& op) -> Ptr { return run::expert_dispatch<T>(op, g); },
          [&](const ExpertLinear& op) -> Ptr { return run::expert_linear<T>(op, g); },
          [&](const ExpertCombine& op) -> Ptr { return run::expert_combine<T>(op, g); },
          [&](const Concat&) -> Ptr { return run::concat<T>(g); },
          [&](const ScaleBy& op) -> Ptr { return run::scale_by<T>(op, g); },
          [&](const SigmoidCrossEntropy&) -> Ptr { return run::sigmoid_cross_entropy<T>(g); },
          [&](const MeanSquaredError&) -> Ptr { return run::mean_squared_error<T>(g); },
          [&](const auto&) -> Ptr {
            RECKON_CHECK(false);  // cannot_run()
            return nullptr;
          }},
      layer.op);
}

template RunnerPtr<float> make_runner<float>(const Layer&, const LayerGeometry&);
template RunnerPtr<double> make_runner<double>(const Layer&, const LayerGeometry&);

template <class T>
void add_column_sums(Workers& workers, const T* values, std::int64_t rows, std::int64_t columns,
                     T* sums) {
  workers.run_pieces(columns, 64, [&](std::int64_t begin, std::int64_t end) {
    T local[64] = {};
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* row = values + r * columns;
      for (std::int64_t j = begin; j < end; ++j) local[j - begin] += row[j];
    }
    for (std::int64_t j = begin; j < end; ++j) sums[j] += local[j - begin];
  });
}

template void add_column_sums<float>(Workers&, const float*, std::int64_t, std::int64_t, float*);
template void add_column_sums<double>(Workers&, const double*, std::int64_t, std::int64_t, double*);

}  // namespace reckon
