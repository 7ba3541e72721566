#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/model/graph.h"

// A network as a list of layers in text: the user's own (`workload.model: {layers: [...]}`).
//
//   - {input: 3x224x224}
//   - {conv2d: 64, kernel: 7, stride: 2, padding: 3}
//   - {batch_norm: true}
//   - {activation: relu, name: stem}
//   - {conv2d: 64, kernel: 3, padding: 1}
//   - {add: "stem, conv2d_4"}
//   - {global_average_pool: true}
//   - {linear: 10}
//   - {softmax_cross_entropy: true}
//
// A layer is its kind with its main attribute, then what else it needs. `name` defaults to the kind
// and the layer's index, `from` (one name or several) to the layer before, `group` to none; sizes
// of the input (`in`, `channels`, `width` of a norm, classes of a loss) to what comes in.
namespace reckon {

using LayerText = std::map<std::string, std::string>;

struct LayerMistake {
  std::optional<std::size_t> layer;  // index in the list; none: the network as a whole
  std::string key;                   // of that layer; "": the layer itself
  std::string what, hint;
};

/// All mistakes at once.
tl::expected<ModelGraph, std::vector<LayerMistake>> make_layers(std::string name,
                                                                std::span<const LayerText> layers);

/// Kinds of layers, for messages and documents, each with an example.
struct LayerKindText {
  std::string_view kind, example;
};
std::span<const LayerKindText> layer_kinds();

}  // namespace reckon
