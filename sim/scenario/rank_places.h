#pragma once
#include <cstdint>

#include "sim/scenario/layout.h"

// Which rank of a job is which under a layout: the one rule of the forecast
// (sim/step/block_times.h) and of the executor (executor/comm/rank_groups.h). As Megatron-LM lays
// them out: tensor innermost, then context, then data (experts are shared out among its
// neighbours), pipeline outermost [Narayanan et al. 2021, Sec. 3].
namespace reckon {

/// Distances between the numbers of neighbouring ranks of a group.
struct RankStrides {
  explicit RankStrides(const Layout& l)
      : context(l.tensor), data(context * l.context), pipeline(data * l.data) {}
  std::int64_t tensor = 1, context, data, pipeline;
  /// Neighbours in expert parallelism are neighbours in data parallelism.
  std::int64_t expert() const { return data; }
  /// data x context: ranks that hold the same part of the model stand in one row of this distance.
  std::int64_t state() const { return context; }
};

/// A rank's index along each axis.
struct RankPlace {
  int tensor = 0, context = 0, data = 0, pipeline = 0;
  /// Of the ranks that share a layer's experts out.
  int expert(const Layout& l) const { return data % l.expert; }
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

/// 0 <= rank < layout.accelerators().
inline RankPlace place_of_rank(const Layout& l, int rank) {
  const RankStrides strides(l);
  const auto along = [&](std::int64_t stride, int size) { return int(rank / stride % size); };
  return {.tensor = along(strides.tensor, l.tensor),
          .context = along(strides.context, l.context),
          .data = along(strides.data, l.data),
          .pipeline = along(strides.pipeline, l.pipeline)};
}
inline int rank_at(const Layout& l, const RankPlace& p) {
  const RankStrides strides(l);
  return int(p.tensor * strides.tensor + p.context * strides.context + p.data * strides.data +
             p.pipeline * strides.pipeline);
}

}  // namespace reckon
