#include "executor/launch/rank_kinds.h"

#include "executor/train/recipe/recipe.h"
#include "sim/scenario/rank_places.h"

namespace reckon {

std::vector<int> kinds_of_ranks(const Plan& plan, const PlannedWorkload& job) {
  const int ranks = computing_ranks(job.strategy);
  std::vector<int> kinds(std::size_t(ranks), 0);
  const Layout& layout = job.strategy.layout;
  const bool in_stages = layout.accelerators() == ranks && layout.pipeline > 1;
  // A chief with a pool of its own is the first worker.
  const bool own_chief = computing_pools(plan).size() > 1 && job.stage_pools.empty();
  for (int rank = 0; rank < ranks; ++rank) {
    int& kind = kinds[std::size_t(rank)];
    if (in_stages) kind = place_of_rank(layout, rank).pipeline;
    if (own_chief && rank < ranks_of_worker(job.strategy)) kind = -1;
  }
  return kinds;
}

}  // namespace reckon
