#include "sim/step/pipeline_passes.h"

#include <algorithm>

namespace reckon {
namespace {

/// The k-th pass of its direction, of all that the stage takes.
PipelinePass nth_pass(const Layout& l, bool forward, std::int64_t k) {
  const std::int64_t p = l.pipeline, v = l.interleave;
  if (v == 1) return {forward, k, 0};
  const int part = static_cast<int>(k / p % v);
  return {forward, k / (p * v) * p + k % p, forward ? part : l.interleave - 1 - part};
}

/// Forward passes before the first backward pass.
std::int64_t passes_ahead(const Layout& l, int stage) {
  if (l.schedule == PipelineSchedule::gpipe) return l.micro_batches;
  const std::int64_t behind = l.pipeline - stage - 1;
  if (l.interleave == 1) return behind + 1;
  return 2 * behind + std::int64_t{l.interleave - 1} * l.pipeline + 1;
}

}  // namespace

std::vector<PipelinePass> passes_of_stage(const Layout& l, int stage) {
  const std::int64_t all = l.micro_batches * l.interleave;
  const std::int64_t ahead = std::min(all, passes_ahead(l, stage));
  std::vector<PipelinePass> passes;
  for (std::int64_t k = 0; k < ahead; ++k) passes.push_back(nth_pass(l, true, k));
  for (std::int64_t k = 0; k < all; ++k) {
    passes.push_back(nth_pass(l, false, k));
    if (ahead + k < all) passes.push_back(nth_pass(l, true, ahead + k));
  }
  return passes;
}

std::vector<std::int64_t> most_in_flight(const Layout& l, int stage) {
  std::vector<std::int64_t> now(std::size_t(l.interleave)), most(std::size_t(l.interleave));
  for (const PipelinePass& pass : passes_of_stage(l, stage)) {
    const auto part = static_cast<std::size_t>(pass.part);
    now[part] += pass.forward ? 1 : -1;
    most[part] = std::max(most[part], now[part]);
  }
  return most;
}

}  // namespace reckon
