#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/ids.h"
#include "sim/base/quantity.h"
#include "sim/base/words.h"
#include "sim/model/layer.h"
#include "sim/model/layer_kinds.h"

// One description of a network, for both clocks: the simulator counts its layers, the executor runs
// the same layers. Layers stand in topological order.
namespace reckon {

class LayerGraph;

enum class SampleUnit { image, sequence, record };
/// "image"; its plural has an s.
constexpr auto words_of(SampleUnit) {
  return std::array{Word<SampleUnit>{"image", SampleUnit::image},
                    Word<SampleUnit>{"sequence", SampleUnit::sequence},
                    Word<SampleUnit>{"record", SampleUnit::record}};
}

/// A network, checked: inputs exist and precede, shapes agree, one loss, and every layer is on a
/// way to it.
class ModelGraph {
 public:
  /// Checks and infers shapes; a layer's id is its index in `layers`, its given `id` and `output`
  /// are not read. All errors at once, each naming the layer; they have no place in a file: the
  /// caller knows it.
  static Expected<ModelGraph> make(std::string name, SampleUnit unit, Shape input,
                                   std::vector<Layer> layers);

  const std::string& name() const { return name_; }
  SampleUnit sample_unit() const { return unit_; }
  std::span<const Layer> layers() const { return layers_; }
  std::span<const LayerCount> counts() const { return counts_; }     // same order as layers()
  std::int64_t sequence_length() const { return sequence_length_; }  // 1 for images and records
  /// The same layers as a graph of Boost.Graph, to traverse: sim/model/layer_graph.h.
  const LayerGraph& graph() const;

  std::int64_t parameters() const;
  /// Those that one token meets: all, but of a mixture of experts only top_k experts a layer.
  std::int64_t active_parameters() const;
  /// Those that are trained, and so have a gradient and an optimizer state.
  std::int64_t trainable_parameters() const;
  Flops forward_flops() const;  // of one sample
  Flops backward_flops() const;
  /// MACs as the literature prints them for CNNs: convolutions and linear layers only, forward, one
  /// sample.
  double forward_macs() const;
  /// What MFU counts: 3 * (convolutions and matrix products, attention over the full T x T) of one
  /// sample. For a transformer this is (6N + 12 L H Q T) T of [Chowdhery 2022, appendix B], N
  /// without look-up tables and, of experts, the active ones. A frozen matrix has no gradient of
  /// its weights: 2 *; 1 * where nothing before it is trained either.
  Flops model_flops() const;
  double saved_elements() const;  // of one sample
  /// All that one sample keeps for the backward pass, without recomputation.
  Bytes saved_bytes(Bytes per_element) const;

 private:
  std::string name_;
  SampleUnit unit_ = SampleUnit::image;
  std::int64_t sequence_length_ = 1;
  std::vector<Layer> layers_;
  std::vector<LayerCount> counts_;
  std::shared_ptr<const LayerGraph> graph_;  // copies of the network share it
};

}  // namespace reckon
