#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/sharding.h"
#include "sim/scenario/layout.h"

// Which layouts can exist for a network.
namespace reckon {

/// What a network lets itself be divided into; made once for each model.
struct LayoutLimits {
  explicit LayoutLimits(const ModelGraph& model);
  std::string model;
  ShardedWidths widths;
  std::vector<std::int64_t> experts;  // numbers of experts that its mixtures have
  int blocks = 0;                     // groups of layers with weights; of a transformer its blocks
  std::int64_t sequence_length = 1;
  bool attention = false;
};

/// A rule that a layout breaks. `key`: of workload.strategy, or "global_batch".
struct BrokenRule {
  std::string key, what, hint;
};
/// All of them; empty: the layout can exist. `global_batch`: what all copies have to share out;
/// `accelerators`: what the degrees have to fill.
std::vector<BrokenRule> broken_rules(const LayoutLimits& limits, const Layout& layout,
                                     int accelerators, std::int64_t global_batch);
/// Layouts that can exist and are rarely meant: sentences.
std::vector<std::string> doubtful_choices(const Layout& layout, int accelerators_per_node);

}  // namespace reckon
