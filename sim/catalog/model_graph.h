#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/ids.h"
#include "sim/base/quantity.h"

// One description of a network, for both clocks: the simulator counts its layers, the executor runs the same
// layers. Layers stand in topological order; shapes are those of ONE sample (no batch axis), row major:
// images are (C, H, W), token sequences are (T) of ids and (T, D) of features.
namespace reckon {

using Shape = std::vector<std::int64_t>;
std::int64_t elements(const Shape& shape);

enum class ActivationKind { relu, gelu, silu, tanh, sigmoid };
enum class PoolKind { max, average };

// What each kind of layer needs to be run and counted. Weight shapes are given behind each.
struct InputLayer {};
struct Linear { std::int64_t in = 0, out = 0; bool bias = true; };                        // (out, in), (out)
struct Conv2d {                                                                           // (out, in/groups, kh, kw)
  std::int64_t in = 0, out = 0, kernel_h = 1, kernel_w = 1, stride = 1, padding = 0, groups = 1;
  bool bias = false;
};
struct BatchNorm { std::int64_t channels = 0; };                                          // scale, shift (C); running mean, variance are no parameters
struct LayerNorm { std::int64_t width = 0; bool bias = true; };                           // (D), (D)
struct RmsNorm { std::int64_t width = 0; };                                               // (D)
struct Activation { ActivationKind kind = ActivationKind::relu; };
struct Pool2d { PoolKind kind = PoolKind::max; std::int64_t kernel = 2, stride = 2, padding = 0; };
struct GlobalAveragePool {};                                                              // (C,H,W) -> (C)
struct Flatten {};
struct Dropout { double rate = 0; };
struct Embedding { std::int64_t rows = 0, width = 0; };                                   // (rows, D): token -> vector
struct PositionEmbedding { std::int64_t rows = 0, width = 0; };                           // (rows, D), added
struct RotaryEmbedding { std::int64_t head_width = 0; };                                  // no parameters
/// softmax(Q K^T / sqrt(head_width)) V on already projected q (T, heads*w), k and v (T, kv_heads*w).
struct Attention { std::int64_t heads = 1, kv_heads = 1, head_width = 64; bool causal = true; };
struct Add {};                                                                            // residual: element-wise sum of the inputs
struct Multiply {};                                                                       // gate: element-wise product of two inputs
struct SoftmaxCrossEntropy { std::int64_t classes = 0; };                                 // (T, classes) or (classes) -> loss

using LayerOp = std::variant<InputLayer, Linear, Conv2d, BatchNorm, LayerNorm, RmsNorm, Activation, Pool2d,
                             GlobalAveragePool, Flatten, Dropout, Embedding, PositionEmbedding, RotaryEmbedding,
                             Attention, Add, Multiply, SoftmaxCrossEntropy>;

/// The kind of work a layer is, as far as efficiency goes (rows of catalogs/efficiencies.csv).
enum class WorkKind { convolution, matmul, attention, memory };  // memory: bound by bytes (norms, activations, adds)

struct Layer {
  LayerId id{};
  std::string name;   // "layer1.0.conv2", "h.3.attn.qkv"
  std::string group;  // what `explain` sums by: "layer1", "h.3"; empty: its own
  LayerOp op;
  std::vector<LayerId> inputs;      // earlier layers
  Shape output;                     // of one sample
  std::optional<LayerId> tied_to;   // shares the weights of that layer (GPT-2's output projection and embedding)
};

/// What one layer costs for ONE sample. Backward is what autograd runs: for a layer with weights the gradient of
/// the input and of the weights (2x forward), for the others 1x.
struct LayerCount {
  std::int64_t parameters = 0;       // 0 where tied
  Flops forward{};                   // a multiply-add is two
  Flops backward{};
  double elements_in = 0;            // activations read in the forward pass, elements
  double elements_out = 0;           // activations written
  double saved_elements = 0;         // kept for the backward pass (recompute: none)
  WorkKind work = WorkKind::memory;
  bool depthwise = false;            // grouped convolution with one channel a group: bound by memory
};

enum class SampleUnit { image, sequence, record };

/// A network, checked: inputs exist and precede, shapes agree, one loss at the end.
class ModelGraph {
 public:
  /// Checks and infers shapes. Layers' `output` may be left empty. All errors at once, each naming the layer.
  static Expected<ModelGraph> make(std::string name, SampleUnit unit, Shape input, std::vector<Layer> layers);

  const std::string& name() const { return name_; }
  SampleUnit sample_unit() const { return unit_; }
  std::span<const Layer> layers() const { return layers_; }
  std::span<const LayerCount> counts() const { return counts_; }  // same order as layers()
  std::int64_t sequence_length() const { return sequence_length_; }  // 1 for images and records

  std::int64_t parameters() const;
  Flops forward_flops() const;   // of one sample
  Flops backward_flops() const;
  /// MACs as the literature prints them for CNNs: convolutions and linear layers only, forward, one sample.
  double forward_macs() const;
  double saved_elements() const;

 private:
  std::string name_;
  SampleUnit unit_ = SampleUnit::image;
  std::int64_t sequence_length_ = 1;
  std::vector<Layer> layers_;
  std::vector<LayerCount> counts_;
};

}  // namespace reckon
