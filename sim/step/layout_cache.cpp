#include "sim/step/step_model.h"

namespace reckon {

std::size_t LayoutCache::Hash::operator()(const Key& key) const {
  // FNV-1a over the numbers [Fowler, Noll, Vo; draft-eastlake-fnv-17, Sec. 2].
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::int64_t number : key) {
    hash ^= static_cast<std::uint64_t>(number);
    hash *= 1099511628211ULL;
  }
  return static_cast<std::size_t>(hash ^ (hash >> 32U));
}

const StepEstimate& LayoutCache::at(const Layout& l) {
  const Key key{l.data,
                l.tensor,
                l.pipeline,
                l.context,
                l.expert,
                l.zero_stage,
                l.micro_batch,
                l.micro_batches,
                l.sequence_parallel ? 1 : 0,
                static_cast<std::int64_t>(l.schedule),
                l.interleave,
                l.offload_optimizer ? 1 : 0,
                l.overlap ? 1 : 0,
                static_cast<std::int64_t>(l.recompute),
                l.stops_recomputing ? 1 : 0};
  const auto found = estimates_.find(key);
  if (found != estimates_.end()) return found->second;
  return estimates_.emplace(key, model_.estimate(l)).first->second;
}

MemoryEstimate LayoutMemory::at(const Layout& l) {
  const Key key{l.tensor, l.context, l.expert, l.sequence_parallel, l.recompute};
  auto found = states_.find(key);
  if (found == states_.end()) found = states_.emplace(key, model_.states(l)).first;
  return model_.memory(l, found->second);
}

}  // namespace reckon
