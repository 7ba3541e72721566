#pragma once
#include "executor/train/layers/layer_runner.h"

// What layer_runner.cpp chooses from: one function a kind, defined for float and double.
namespace reckon::run {

template <class T>
using Made = RunnerPtr<T>;
using Geometry = LayerGeometry;

// run_linear.cpp
template <class T>
Made<T> linear(const Linear&, const Geometry&);
// run_convolution.cpp
template <class T>
Made<T> convolution(const Conv2d&, const Geometry&);
// run_batch_norm.cpp
template <class T>
Made<T> batch_norm(const BatchNorm&, const Geometry&);
// run_norms.cpp
template <class T>
Made<T> layer_norm(const LayerNorm&, const Geometry&);
template <class T>
Made<T> rms_norm(const RmsNorm&, const Geometry&);
// run_activation.cpp
template <class T>
Made<T> activation(const Activation&, const Geometry&);
template <class T>
Made<T> dropout(const Dropout&, LayerId, const Geometry&);
// run_arithmetic.cpp
template <class T>
Made<T> add(const Geometry&);
template <class T>
Made<T> multiply(const Geometry&);
template <class T>
Made<T> scale_by(const ScaleBy&, const Geometry&);
template <class T>
Made<T> pairwise_dots(const PairwiseDots&, const Geometry&);
// run_pool.cpp
template <class T>
Made<T> pool(const Pool2d&, const Geometry&);
template <class T>
Made<T> global_average_pool(const Geometry&);
// run_rearrange.cpp
template <class T>
Made<T> input(const Geometry&);
template <class T>
Made<T> flatten(const Geometry&);
template <class T>
Made<T> concat(const Geometry&);
template <class T>
Made<T> image_tokens(const Geometry&);
template <class T>
Made<T> select_tokens(const SelectTokens&, const Geometry&);
template <class T>
Made<T> select_features(const SelectFeatures&, const Geometry&);
// run_embedding.cpp
template <class T>
Made<T> embedding(const Embedding&, const Geometry&);
template <class T>
Made<T> embedding_bag(const EmbeddingBag&, const Geometry&);
template <class T>
Made<T> position_embedding(const PositionEmbedding&, const Geometry&);
template <class T>
Made<T> class_token(const ClassToken&, const Geometry&);
// run_positions.cpp
template <class T>
Made<T> rotary(const RotaryEmbedding&, const Geometry&);
template <class T>
Made<T> sinusoidal(const SinusoidalPositions&, const Geometry&);
// run_attention.cpp
template <class T>
Made<T> attention(const Attention&, LayerId, const Geometry&);
// run_losses.cpp
template <class T>
Made<T> softmax_cross_entropy(const SoftmaxCrossEntropy&, const Geometry&);
template <class T>
Made<T> sigmoid_cross_entropy(const Geometry&);
template <class T>
Made<T> mean_squared_error(const Geometry&);
// run_experts.cpp
template <class T>
Made<T> expert_dispatch(const ExpertDispatch&, const Geometry&);
template <class T>
Made<T> expert_linear(const ExpertLinear&, const Geometry&);
template <class T>
Made<T> expert_combine(const ExpertCombine&, const Geometry&);

}  // namespace reckon::run
