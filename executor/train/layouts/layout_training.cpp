#include "executor/train/layouts/layout_training.h"

#include <fmt/format.h>

#include <stdexcept>

#include "executor/train/layouts/exchange_blocks.h"
#include "executor/train/layouts/pipeline/runtime.h"
#include "executor/train/layouts/pipeline/stages.h"
#include "executor/train/layouts/sharded_runtime.h"
#include "executor/train/recipe/recipe.h"

namespace reckon {
namespace {

/// The layout's, in passes of that size.
Layout with_passes_of(std::int64_t batch, Layout l, std::int64_t share) {
  l.micro_batch = static_cast<int>(batch);
  l.micro_batches = share / batch;
  if (l.schedule == PipelineSchedule::interleaved && l.micro_batches % l.pipeline != 0)
    throw std::invalid_argument(fmt::format(
        "an interleaved schedule needs a multiple of its {} stages in micro-batches, and passes of "
        "{} samples make {}: another --micro-batch",
        l.pipeline, batch, l.micro_batches));
  return l;
}

/// What a rank at that place has, in that stage.
ParameterLayout layout_at(const PlannedWorkload& job, const Layout& l, const ModelPlace& place,
                          int stage) {
  const ParameterLayout layout = parameter_layout(job.model, place);
  if (l.pipeline == 1) return layout;
  return PipelineStages(job.model, l, job.stage_blocks).parameters(job.model, layout, stage);
}

/// Those of experts that other ranks do not have.
std::vector<ParameterRange> ranges_of_experts(const ParameterLayout& layout) {
  std::vector<ParameterRange> ranges;
  for (const ParameterSlot& slot : layout.slots)
    if (slot.of_experts) ranges.push_back({slot.first, slot.count});
  return ranges;
}

}  // namespace

LayoutTraining make_layout_training(const PlannedWorkload& job, Communicator& peers,
                                    const RuntimeOptions& passes, Workers& workers,
                                    LayoutMaker* maker, bool goes_on_from_memory) {
  Layout l = job.strategy.layout;
  LayoutTraining training;
  Communicator* replicas = &peers;  // ranks that hold the same part of the network
  ParameterLayout layout = parameter_layout(job.model);
  std::function<double(double)> squares_of_all;
  RuntimeOptions placed = passes;
  const RankPlace place = place_of_rank(l, peers.rank());
  ModelPlace placed_alike;  // as the first of the ranks that share experts out
  if (l.replica() > 1 || l.expert > 1) {
    training.groups = std::make_unique<LayoutGroups>(make_layout_groups(peers, l));
    const LayoutGroups& groups = *training.groups;
    replicas = groups.state.get();
    placed.place = place_in_model(l, place);
    placed_alike = placed.place;
    placed_alike.expert.rank = 0;
    placed.groups = {groups.tensor.get(), groups.context.get(), groups.expert.get()};
    placed.stage_blocks = job.stage_blocks;
    layout = layout_at(job, l, placed.place, place.pipeline);
    // Context ranks have the same sums as data-parallel ranks have. Under ZeRO all of those have
    // parts of their own, ranks that share experts out among them.
    const bool parts = l.zero_stage > 0;
    squares_of_all = [&groups, parts](double squares) {
      for (Communicator* group : {groups.tensor.get(), groups.expert.get(), groups.pipeline.get()})
        if (!parts || group != groups.expert.get()) group->all_reduce(std::span(&squares, 1));
      return squares;
    };
  }
  training.share = share_of(job, place.data, l.data, passes.batch);
  l = with_passes_of(passes.batch, l, training.share.own);

  Communicator* expert_replicas = training.groups ? training.groups->expert_state.get() : nullptr;
  const double clip_norm = job.optimizer_settings.clip_norm;
  const RankInLayout rank{job.model, l, layout, *replicas, training.groups.get(), workers};
  std::unique_ptr<ZeroExchange> zero;
  if (l.zero_stage > 0) {
    ZeroOptions options{.optimizer = optimizer_rule(job),
                        .trained = trained_ranges(layout),
                        .blocks = exchange_blocks(job.model, layout),
                        .stage = l.zero_stage,
                        .clip_norm = clip_norm,
                        .overlap = l.overlap,
                        .squares_of_all = squares_of_all,
                        .counted = counted_ranges(layout_at(job, l, placed_alike, place.pipeline)),
                        .expert_replicas = expert_replicas};
    zero = maker ? maker->make_zero(rank, std::move(options))
                 : make_zero_exchange(*replicas, std::move(options));
  } else {
    AllReduceOptions options{.optimizer = optimizer_rule(job),
                             .trained = trained_ranges(layout),
                             .clip_norm = clip_norm,
                             .overlap = l.overlap,
                             .squares_of_all = squares_of_all,
                             .counted = counted_ranges(layout),
                             .of_experts = ranges_of_experts(layout),
                             .expert_replicas = expert_replicas};
    if (goes_on_from_memory && training.groups)
      options.before_update = [&peers] { peers.barrier(); };
    training.exchange = maker ? maker->make_all_reduce(rank, std::move(options))
                              : make_all_reduce_exchange(*replicas, std::move(options));
  }
  ZeroExchange* const gathers = l.zero_stage == 3 ? zero.get() : nullptr;
  if (maker)
    training.runtime = maker->make_runtime(rank, placed, gathers);
  else if (l.pipeline > 1)
    training.runtime = make_pipeline_runtime(
        job.model, placed, l, {*training.groups->pipeline, *training.groups->pipeline_back},
        make_cpu_stage(job.model, layout, l.zero_stage, workers), gathers);
  else if (l.zero_stage >= 2)
    training.runtime = make_sharded_runtime(job.model, placed, workers, gathers);
  else
    training.runtime = make_cpu_runtime(job.model, placed, workers);
  if (zero) training.exchange = std::move(zero);
  return training;
}

}  // namespace reckon
