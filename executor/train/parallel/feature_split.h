#pragma once
#include <cstdint>
#include <vector>

#include "executor/train/parallel/model_place.h"
#include "sim/model/sharding.h"

// How the features of a split tensor (sim/model/sharding.h) are shared out among tensor ranks.
namespace reckon {

/// Features side by side of which every rank has an equal part: `unit` of them stay together.
struct FeatureSection {
  std::int64_t width = 0, unit = 1;
  bool heads = false;  // units are attention heads
  friend bool operator==(const FeatureSection&, const FeatureSection&) = default;
};
/// The queries, keys and values of one matrix are three sections; all else is one. Empty: whole.
using FeatureSplit = std::vector<FeatureSection>;

/// A rank's features of a section: [first, first + count) of it.
struct SectionPart {
  std::int64_t first = 0, count = 0;
  int sharers = 1;     // ranks that have these same features: key-value heads fewer than ranks
  bool counts = true;  // of the sharers this one stands for all
};
/// Heads divide the ranks or are divided by them; other features differ by one at most.
SectionPart part_of(const FeatureSection& section, GroupPlace tensor);
/// Features of all sections that a rank has.
std::int64_t features_of_rank(const FeatureSplit& split, GroupPlace tensor);

/// Does its output have split features? A loss of split classes adds them up.
bool splits_output(const Layer& layer, const LayerSharding& sharding);

/// By layer: of its output, where it is split. What cannot be shared out among so many ranks is
/// added to `problems`.
std::vector<FeatureSplit> feature_splits(const ModelGraph& model,
                                         std::span<const LayerSharding> sharding, int ranks,
                                         Diagnostics& problems);

}  // namespace reckon
