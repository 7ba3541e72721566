#pragma once
#include "executor/train/layers/layer_runner.h"

// What layer_runner.cpp chooses from: one function a kind, defined for float and double.
namespace reckon::run {

template <class T>
using Made = RunnerPtr<T>;
using Geometry = LayerGeometry;

// linear.cpp
template <class T>
Made<T> linear(const Linear&, const Geometry&);
// convolution.cpp
template <class T>
Made<T> convolution(const Conv2d&, const Geometry&);
// batch_norm.cpp
template <class T>
Made<T> batch_norm(const BatchNorm&, const Geometry&);
// norms.cpp
template <class T>
Made<T> layer_norm(const LayerNorm&, const Geometry&);
template <class T>
Made<T> rms_norm(const RmsNorm&, const Geometry&);
// activation.cpp
template <class T>
Made<T> activation(const Activation&, const Geometry&);
template <class T>
Made<T> dropout(const Dropout&, LayerId, const Geometry&);
// arithmetic.cpp
template <class T>
Made<T> add(const Geometry&);
template <class T>
Made<T> multiply(const Geometry&);
template <class T>
Made<T> scale_by(const ScaleBy&, const Geometry&);
template <class T>
Made<T> pairwise_dots(const PairwiseDots&, const Geometry&);
// pool.cpp
template <class T>
Made<T> pool(const Pool2d&, const Geometry&);
template <class T>
Made<T> global_average_pool(const Geometry&);
// rearrange.cpp
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
// embedding.cpp
template <class T>
Made<T> embedding(const Embedding&, const Geometry&);
template <class T>
Made<T> embedding_bag(const EmbeddingBag&, const Geometry&);
template <class T>
Made<T> position_embedding(const PositionEmbedding&, const Geometry&);
template <class T>
Made<T> class_token(const ClassToken&, const Geometry&);
// positions.cpp
template <class T>
Made<T> rotary(const RotaryEmbedding&, const Geometry&);
template <class T>
Made<T> sinusoidal(const SinusoidalPositions&, const Geometry&);
// attention.cpp
template <class T>
Made<T> attention(const Attention&, LayerId, const Geometry&);
// cross_entropy.cpp
template <class T>
Made<T> softmax_cross_entropy(const SoftmaxCrossEntropy&, const Geometry&);
// ring_attention.cpp: where context ranks share the tokens out
template <class T>
Made<T> ring_attention(const Attention&, LayerId, const Geometry&);
// losses.cpp
template <class T>
Made<T> sigmoid_cross_entropy(const Geometry&);
template <class T>
Made<T> mean_squared_error(const Geometry&);
// experts.cpp
template <class T>
Made<T> expert_dispatch(const ExpertDispatch&, const Geometry&);
template <class T>
Made<T> expert_linear(const ExpertLinear&, const Geometry&);
template <class T>
Made<T> expert_combine(const ExpertCombine&, const Geometry&);
// expert_parallel.cpp: where expert ranks share the experts out
template <class T>
Made<T> dispatch_to_ranks(const ExpertDispatch&, const Geometry&);
template <class T>
Made<T> linear_of_own_experts(const ExpertLinear&, const Geometry&);
template <class T>
Made<T> combine_from_ranks(const ExpertCombine&, const Geometry&);
// tensor_exchange.cpp
template <class T>
Made<T> tensor_exchange(const Geometry&);

}  // namespace reckon::run
