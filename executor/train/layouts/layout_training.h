#pragma once
#include <memory>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/communicator.h"
#include "executor/comm/gradient_exchange.h"
#include "executor/comm/rank_groups.h"
#include "executor/comm/zero_exchange.h"
#include "executor/train/step_runtime.h"
#include "executor/train/trainer.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// A rank in its layout, as what it trains with is made for.
struct RankInLayout {
  const ModelGraph& model;
  const Layout& layout;               // with the micro-batches of this rank
  const ParameterLayout& parameters;  // that it has
  Communicator& replicas;             // ranks that hold the same part of the network
  const LayoutGroups* groups;         // nullptr: all ranks have the whole network
  Workers& workers;                   // its threads
};

/// What makes what a rank trains with, where that is no CPU: all that it makes goes before it does.
class LayoutMaker {
 public:
  virtual ~LayoutMaker() = default;
  /// Asked first: one of both, once. Options are of rank.parameters.
  virtual std::unique_ptr<ZeroExchange> make_zero(const RankInLayout& rank,
                                                  ZeroOptions options) = 0;
  virtual std::unique_ptr<GradientExchange> make_all_reduce(const RankInLayout& rank,
                                                            AllReduceOptions options) = 0;
  /// `gathers`: what make_zero() made, with zero_stage 3; else nullptr.
  virtual std::unique_ptr<StepRuntime> make_runtime(const RankInLayout& rank,
                                                    const RuntimeOptions& passes,
                                                    ZeroExchange* gathers) = 0;
};

/// What one rank of a layout trains with.
struct LayoutTraining {
  std::unique_ptr<LayoutGroups> groups;  // nullptr: all ranks have the whole network
  RankShare share;
  std::unique_ptr<GradientExchange> exchange;
  std::unique_ptr<StepRuntime> runtime;  // goes before the exchange, which it may call
};

/// Of rank peers.rank() of the job's layout, whose ranks are those of `peers`; not for parameter
/// servers. Collective over them. `passes`: of one micro-batch; more than the layout's smaller ones
/// are accumulated. cannot_train() of the plan is empty. All arguments must outlive it. Throws
/// CommError; std::invalid_argument where the schedule does not go with so many micro-batches.
/// `maker`: nullptr: it trains on CPUs. `goes_on_from_memory`: after a loss ranks go on from what
/// those that are left hold (held_state.h), so where they hold different parts they agree on each
/// update, by a barrier over `peers`.
LayoutTraining make_layout_training(const PlannedWorkload& job, Communicator& peers,
                                    const RuntimeOptions& passes, Workers& workers,
                                    LayoutMaker* maker = nullptr, bool goes_on_from_memory = false);

}  // namespace reckon
