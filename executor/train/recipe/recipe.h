#pragma once
#include <cstdint>
#include <vector>

#include "executor/train/parameters.h"
#include "kernels/optimizer/optimizer.h"
#include "sim/scenario/plan.h"

// From what the plan says to what the optimizer does.
namespace reckon {

/// Do workers have of embedding tables the rows of a step alone?
bool pulls_rows(const PlannedWorkload& job);

/// A worker of the plan is so many processes of reckon-worker, each a rank on a device of its own:
/// ranks [k * n, (k + 1) * n) are worker k's, so that neighbours in the layout share a node
/// (rank_places.h). A worker that computes on CPUs is one.
int ranks_of_worker(const PlannedStrategy& strategy);
/// Of all workers.
int computing_ranks(const PlannedStrategy& strategy);

OptimizerRule optimizer_rule(const PlannedWorkload& job);

/// Of step `step` (from 0) of `steps`. Warm-up: rate * (step + 1) / warmup_steps [Goyal 2017,
/// arXiv:1706.02677, section 2.2]. Then constant; or times decay_factor every decay_every steps of
/// the whole training; or cosine from 1 to final_fraction at the last step [Loshchilov & Hutter
/// 2017, arXiv:1608.03983, eq. 5, one period].
double learning_rate(const PlannedOptimizer& o, std::int64_t step, std::int64_t steps);

/// Trained slots, ascending, neighbours joined. Biases, norms and other vectors do not decay.
std::vector<TrainedRange> trained_ranges(const ParameterLayout& layout);
/// Of them those whose gradients this rank stands for: added up over tensor, expert and pipeline
/// ranks their squares are those of the whole model's gradient, each element once.
std::vector<TrainedRange> counted_ranges(const ParameterLayout& layout);

}  // namespace reckon
