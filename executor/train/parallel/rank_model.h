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

struct RankModel {
  std::vector<RankLayer> layers;
  std::vector<LayerId> made;  // by layer of the network: which of `layers` makes its output
  ModelPlace place;
};

/// All that keeps `place` from being computed, each naming its layer.
Expected<RankModel> make_rank_model(const ModelGraph& model, const ModelPlace& place);
/// All of it on one rank.
RankModel whole_model(const ModelGraph& model);

/// What of `layout` the worker's runtime cannot compute for this network, whatever the rank; empty:
/// it can. Layouts that cannot exist at all are layout_rules.h's to refuse.
Diagnostics model_parallel_problems(const ModelGraph& model, const Layout& layout);

}  // namespace reckon
