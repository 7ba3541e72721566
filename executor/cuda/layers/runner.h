#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/comm/metered_communicator.h"
#include "executor/cuda/exchange/group.h"
#include "executor/cuda/layers/products.h"
#include "executor/cuda/memory/buffers.h"
#include "executor/train/layers/layer_runner.h"

// How one layer of a graph is run on a device: as executor/train/layers/layer_runner.h has it for
// CPUs, with the same rows of features, over the kernels of kernels/. E is what activations, their
// gradients and the weights that layers read are held in; master weights, gradients of weights and
// statistics are float.
namespace reckon::cuda {

class ExpertRoute;  // executor/cuda/layers/expert_route.h

struct DevicePass {
  Products* products = nullptr;
  cudaStream_t stream = nullptr;
  cudaStream_t round = nullptr;  // of what goes round the context ranks beside it; null: one rank
  bool training = true, recomputing = false;
  std::uint64_t seed = 1;
  std::int64_t step = 0, first_sample = 0;
  const float* target = nullptr;         // of the loss in work, on the device
  const float* slopes = nullptr;         // of that loss of each sample, (B), on the device
  const std::int32_t* masked = nullptr;  // SelectTokens: (B, count) positions, on the device
  DeviceGroup* tensor = nullptr;         // of ranks that share the model; null: one
  DeviceGroup* context = nullptr;        // of ranks that share the tokens of a sample; null: one
  DeviceGroup* expert = nullptr;         // of ranks that share experts out; null: one
  Communicator* expert_hosts = nullptr;  // the same ranks
  ModelExchanges* taken = nullptr;       // of exchanges with them
};

/// Notes what an exchange takes, in which this rank sends so much.
template <class Exchange>
void timed(CommunicationTaken& taken, Bytes sent, Exchange run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  taken.time += std::chrono::steady_clock::now() - begin;
  taken.sent += sent;
}
/// Asks the tensor ranks' group for one, of which this rank sends `each` floats to each of the
/// others.
template <class Exchange>
void timed_exchange(const DevicePass& pass, std::int64_t each, Exchange run) {
  timed(pass.taken->tensor, Bytes{double(each) * (pass.tensor->size() - 1) * sizeof(float)},
        [&] { run(*pass.tensor); });
}

template <class E>
struct DeviceLayerMemory {
  std::vector<const E*> inputs;
  E* output = nullptr;
  // Elements from a row of the first input, or of the output, and of their gradients, to the next;
  // 0: rows lie without gaps. Only logits have them (runtime/graph.cpp).
  std::int64_t input_stride = 0, output_stride = 0;
  const E* weight = nullptr;  // rounded to E; tied: the owner's
  const E* bias = nullptr;
  // Where the first input is an InputLayer, or fields of one: its numbers as they came, here and on
  // the device; those of a sample, and the first of them that is an input.
  std::span<const float> record_here;
  const float* record = nullptr;
  std::int64_t record_width = 0, record_first = 0;
  const E* output_gradient = nullptr;
  std::vector<E*> input_gradients;  // null: nothing before it is trained
  std::vector<char> accumulate;
  float* weight_gradient = nullptr;  // added to; null: frozen
  float* bias_gradient = nullptr;
  std::byte* scratch = nullptr;  // scratch_bytes(), aligned to 256 bytes
  float* losses = nullptr;       // of a loss: (B)
};

template <class E>
class DeviceRunner {
 public:
  virtual ~DeviceRunner() = default;
  virtual void forward(const DeviceLayerMemory<E>& memory, const DevicePass& pass) = 0;
  virtual void backward(const DeviceLayerMemory<E>& memory, const DevicePass& pass) = 0;
  virtual std::int64_t scratch_bytes() const { return 0; }
  /// On the device; empty where there are none.
  virtual std::span<float> running_statistics() { return {}; }
};
template <class E>
using DeviceRunnerPtr = std::unique_ptr<DeviceRunner<E>>;

/// reason_not_on_device() (executor/train/device/layers.h) must be "". `route`: of the mixture of
/// experts that the layer belongs to, which its dispatch plans in each forward pass; null: it plans
/// one of its own.
template <class E>
DeviceRunnerPtr<E> make_device_runner(const Layer& layer, const LayerGeometry& geometry,
                                      ExpertRoute* route = nullptr);

// What make_device_runner() chooses from; each in the file of layers/ that names it.
namespace run {
// tensor_exchange.cpp
template <class E>
DeviceRunnerPtr<E> tensor_exchange(const LayerGeometry&);
// dense.cpp
template <class E>
DeviceRunnerPtr<E> linear(const Linear&, const LayerGeometry&);
// convolution.cpp
/// Of a convolution whose channels are not in groups: as is expected to be faster; or as told, so
/// that the two can be compared. Unwritten ones need a 16-bit type and a device that takes them,
/// implicit_convolution_takes().
enum class Patches { as_expected, written, unwritten };
template <class E>
DeviceRunnerPtr<E> convolution(const Conv2d&, const LayerGeometry&,
                               Patches patches = Patches::as_expected);
// norm.cpp
template <class E>
DeviceRunnerPtr<E> row_norm(std::int64_t width, std::int64_t heads, bool centred,
                            const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> batch_norm(const BatchNorm&, const LayerGeometry&);
// elements.cpp
template <class E>
DeviceRunnerPtr<E> activation(const Activation&, const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> dropout(const Dropout&, LayerId, const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> add(const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> multiply(const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> scale_by(const ScaleBy&, const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> mean_squared_error(const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> sigmoid_cross_entropy(const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> input(const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> flatten(const LayerGeometry&);
// window.cpp
template <class E>
DeviceRunnerPtr<E> pool(const Pool2d&, const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> global_average_pool(const LayerGeometry&);
// sequence.cpp
template <class E>
DeviceRunnerPtr<E> embedding(const Embedding&, const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> embedding_bag(const EmbeddingBag&, const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> position_embedding(const PositionEmbedding&, const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> rotary(const RotaryEmbedding&, const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> attention(const Attention&, LayerId, const LayerGeometry&);
// ring_attention.cpp: where context ranks share the tokens out
template <class E>
DeviceRunnerPtr<E> ring_attention(const Attention&, LayerId, const LayerGeometry&);
// sequence.cpp
template <class E>
DeviceRunnerPtr<E> select_tokens(const SelectTokens&, const LayerGeometry&);
// records.cpp
template <class E>
DeviceRunnerPtr<E> select_features(const SelectFeatures&, const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> concat(const LayerGeometry&);
template <class E>
DeviceRunnerPtr<E> pairwise_dots(const PairwiseDots&, const LayerGeometry&);
// cross_entropy.cpp
template <class E>
DeviceRunnerPtr<E> softmax_cross_entropy(const SoftmaxCrossEntropy&, const LayerGeometry&);
// experts.cpp
template <class E>
DeviceRunnerPtr<E> expert_dispatch(const ExpertDispatch&, const LayerGeometry&, ExpertRoute*);
template <class E>
DeviceRunnerPtr<E> expert_linear(const ExpertLinear&, const LayerGeometry&, ExpertRoute*);
template <class E>
DeviceRunnerPtr<E> expert_combine(const ExpertCombine&, const LayerGeometry&, ExpertRoute*);
}  // namespace run

}  // namespace reckon::cuda
