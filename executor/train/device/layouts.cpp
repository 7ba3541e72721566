#include "executor/train/device/layouts.h"

#include <fmt/format.h>

#include "executor/train/parallel/rank_model.h"

namespace reckon {

Diagnostics cannot_cut_on_device(const PlannedWorkload& job) {
  Diagnostics problems;
  if (!cuts_the_model(job.strategy)) return problems;
  const Layout& l = job.strategy.layout;
  if (l.expert > 1 && l.offload_optimizer)
    problems.push_back({.at = {},
                        .what = fmt::format("reckon-worker's ranks with expert: {} and "
                                            "offload_optimizer train on CPUs, not on devices",
                                            l.expert),
                        .hint = "expert: 1, offload_optimizer: false, or --device cpu"});
  if (l.tensor <= 1 || !problems.empty()) return problems;
  const auto rank = make_rank_model(job.model, place_in_model(l, {}));
  if (!rank) return rank.error();
  for (const RankLayer& layer : rank->layers) {
    const auto* dropout = std::get_if<Dropout>(&layer.layer.op);
    if (dropout == nullptr || dropout->rate == 0 || layer.part.features.total == 0) continue;
    problems.push_back(
        {.at = {},
         .what =
             fmt::format("layer '{}' drops features that tensor ranks share out: reckon-worker's "
                         "ranks train it on CPUs, not on devices",
                         layer.layer.name),
         .hint = "tensor: 1, or --device cpu"});
  }
  return problems;
}

}  // namespace reckon
