#pragma once
#include <vector>

#include "executor/train/layers/layer_part.h"
#include "executor/train/parallel/feature_split.h"
#include "sim/base/diagnostic.h"
#include "sim/model/graph.h"

// What one rank runs of a network that several ranks hold together, by the rules by which the
// forecast divides it: sim/model/sharding.h for tensor parallelism [Shoeybi et al. 2019,
// arXiv:1909.08053] and sequence parallelism [Korthikanti et al. 2022, arXiv:2205.05198],
// sim/scenario/layout_rules.h for the rest. A pure function of network and place.
namespace reckon {

/// A layer as this rank runs it.
struct RankLayer {
  /// Sizes and shapes are this rank's; `id` and `inputs` count in RankModel::layers, `tied_to` in
  /// the network's. Of an exchange between tensor ranks the op is a ScaleBy of one, which needs
  /// nothing for its backward pass.
  Layer layer;
  LayerId origin{};  // in the network; of an exchange the layer whose output it hands on
  LayerPart part;
  TensorCut cut = TensorCut::whole;
  FeatureSplit split;         // of the matrix's columns or rows that are cut; else empty
  bool sums_weights = false;  // the gradient of its weights is a summand of the tensor ranks'
  bool has_backward = false;
  bool is_exchange() const { return part.exchange != TensorExchange::none; }
};

/// Layers [first, end) of a graph, or of a RankModel.
struct LayerSpan {
  std::size_t first = 0, end = 0;
  bool has(std::size_t layer) const { return layer >= first && layer < end; }
  friend bool operator==(const LayerSpan&, const LayerSpan&) = default;
};

struct RankModel {
  std::vector<RankLayer> layers;
  // By layer of the network, which of `layers` makes its output, and which is the first of those
  // that it and its inputs' exchanges are.
  std::vector<LayerId> made, begins;
  ModelPlace place;

  /// The layers of the network's [first, end), exchanges among them.
  LayerSpan span_of(LayerSpan of_network) const {
    const auto at = [&](std::size_t i) {
      return i < begins.size() ? index(begins[i]) : layers.size();
    };
    return {at(of_network.first), at(of_network.end)};
  }
};
inline LayerSpan all_layers(const RankModel& model) { return {0, model.layers.size()}; }

/// All that keeps `place` from being computed, each naming its layer.
Expected<RankModel> make_rank_model(const ModelGraph& model, const ModelPlace& place);
/// All of it on one rank.
RankModel whole_model(const ModelGraph& model);

/// What of `layout` the worker's runtime cannot compute for this network, whatever the rank; empty:
/// it can. Layouts that cannot exist at all are layout_rules.h's to refuse.
Diagnostics model_parallel_problems(const ModelGraph& model, const Layout& layout);

}  // namespace reckon
