#include "executor/train/layout_training.h"

#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/zero_exchange.h"
#include "executor/train/exchange_blocks.h"
#include "executor/train/recipe.h"
#include "executor/train/sharded_runtime.h"

namespace reckon {

LayoutTraining make_layout_training(const PlannedWorkload& job, Communicator& peers,
                                    const RuntimeOptions& passes, Workers& workers) {
  const Layout& l = job.strategy.layout;
  const ParameterLayout layout = parameter_layout(job.model);
  const double clip_norm = job.optimizer_settings.clip_norm;
  LayoutTraining training{.share = share_of(job, peers.rank(), peers.size())};
  if (l.zero_stage == 0) {
    training.exchange = make_all_reduce_exchange(peers, {.optimizer = optimizer_rule(job),
                                                         .trained = trained_ranges(layout),
                                                         .clip_norm = clip_norm,
                                                         .overlap = l.overlap});
    training.runtime = make_cpu_runtime(job.model, passes, workers);
    return training;
  }
  auto exchange = make_zero_exchange(peers, {.optimizer = optimizer_rule(job),
                                             .trained = trained_ranges(layout),
                                             .blocks = exchange_blocks(job.model, layout),
                                             .stage = l.zero_stage,
                                             .clip_norm = clip_norm,
                                             .overlap = l.overlap});
  if (l.zero_stage == 1)
    training.runtime = make_cpu_runtime(job.model, passes, workers);
  else
    training.runtime = make_sharded_runtime(job.model, passes, workers,
                                            l.zero_stage == 3 ? exchange.get() : nullptr);
  training.exchange = std::move(exchange);
  return training;
}

}  // namespace reckon
