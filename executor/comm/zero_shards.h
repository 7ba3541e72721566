#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "kernels/optimizer/optimizer.h"

// How ZeRO cuts state over ranks: the elements of a block, one behind the other, in equal parts,
// one a rank; behind the last element zeros fill the last part up. So a rank holds 1 / ranks of a
// block, and less than an element a rank more: what sim/step/memory/layout_memory.h counts.
namespace reckon {

/// Layers whose state is exchanged at once: a group of the network (first_of_groups,
/// sim/step/memory/folded_model.h), as the forecast's.
struct ZeroBlock {
  ParameterRange whole;                 // of the flat buffers
  std::vector<ParameterRange> trained;  // in it, ascending; the rest is frozen
  bool of_experts = false;              // its replicas are those of this rank's experts alone
};

class ShardedRanges {
 public:
  ShardedRanges() = default;
  /// Of the `rank`-th of `ranks` ranks.
  ShardedRanges(std::vector<ParameterRange> ranges, int ranks, int rank);

  std::size_t count() const { return count_; }  // elements
  std::size_t each() const { return each_; }    // of a rank's part, with what fills it up
  std::size_t padded() const { return each_ * ranks_; }
  /// The rank's own elements: ranges of the flat buffers.
  const std::vector<ParameterRange>& own() const { return own_; }

  /// All elements, and zeros behind them, to padded() numbers; and back, without those zeros.
  void pack(std::span<const float> flat, std::span<float> all) const;
  void unpack(std::span<const float> all, std::span<float> flat) const;
  /// The same of the own part, each() numbers.
  void pack_own(std::span<const float> flat, std::span<float> part) const;
  void unpack_own(std::span<const float> part, std::span<float> flat) const;
  /// What of `trained`, ranges of the flat buffers, lies in the own part, counted from its begin.
  std::vector<TrainedRange> in_own(std::span<const TrainedRange> trained) const;

 private:
  std::vector<ParameterRange> ranges_, own_;
  std::size_t ranks_ = 1, count_ = 0, each_ = 0;
};

/// What of `whole` is in none of `ranges`, which lie in it, ascending.
std::vector<ParameterRange> without(ParameterRange whole, std::span<const ParameterRange> ranges);

}  // namespace reckon
