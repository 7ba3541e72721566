#include <fmt/format.h>

#include "sim/scenario/layout_rules.h"
#include "sim/scenario/resolve/draft.h"

// Who works on how many samples: the batch against the accelerators, and a layout against its
// rules.
namespace reckon::planning {
namespace {

/// Samples that one accelerator of a job that cuts no sample's work gets in a step.
std::optional<std::int64_t> share_of_accelerator(Draft& draft, PlannedWorkload& job,
                                                 const WorkloadSpec& workload) {
  const PlannedStrategy& s = job.strategy;
  // Backup workers compute, but a step is over when the others have answered [Chen et al. 2016].
  const std::int64_t useful =
      std::int64_t{s.workers - s.backup_workers()} * (s.accelerators() / s.workers);
  if (workload.batch_per_accelerator) {
    job.global_batch = useful * *workload.batch_per_accelerator;
    return *workload.batch_per_accelerator;
  }
  const std::int64_t batch = *workload.global_batch;
  if (batch % useful != 0) {
    const std::int64_t below = batch / useful * useful;
    draft.error("workload.global_batch",
                fmt::format("global_batch {} is not divisible by {} accelerators", batch, useful),
                below > 0 ? fmt::format("{} and {} are", below, below + useful)
                          : fmt::format("the smallest is {}", useful));
    return std::nullopt;
  }
  job.global_batch = batch;
  return batch / useful;
}

/// Every accelerator runs whole samples, in passes of micro_batch.
void resolve_passes(Draft& draft, PlannedWorkload& job, const WorkloadSpec& workload) {
  const auto share = share_of_accelerator(draft, job, workload);
  if (!share) return;
  const std::int64_t pass = workload.strategy.micro_batch.value_or(static_cast<int>(*share));
  if (*share % pass != 0)
    draft.error("workload.strategy.micro_batch",
                fmt::format("micro_batch {} does not divide the {} samples of an accelerator", pass,
                            *share));
  job.strategy.layout.micro_batch = static_cast<int>(pass);
}

/// Some accelerators run a sample together, so that a batch an accelerator says nothing.
void resolve_micro_batches(Draft& draft, PlannedWorkload& job, const WorkloadSpec& workload) {
  if (workload.batch_per_accelerator) {
    draft.error("workload.batch_per_accelerator",
                "with model_parallel several accelerators share one sample",
                "global_batch: 1536, and strategy: {micro_batch: 1}");
    return;
  }
  job.global_batch = *workload.global_batch;
  job.strategy.layout.micro_batch = workload.strategy.micro_batch.value_or(1);
}

void check_layout(Draft& draft, const PlannedWorkload& job, const StrategySpec& spec) {
  Layout layout = layout_of(job);
  // The degrees as they were written, so that a product that does not fit is told as such.
  if (spec.data) layout.data = *spec.data;
  const LayoutLimits limits(job.model);
  for (const BrokenRule& rule :
       broken_rules(limits, layout, job.strategy.accelerators(), job.global_batch))
    draft.error(
        rule.key == "global_batch" ? "workload.global_batch" : "workload.strategy." + rule.key,
        rule.what, rule.hint);
  const int per_node = draft.plan.pool_with(Role::worker)->accelerators_per_node;
  for (std::string& doubt : doubtful_choices(layout, per_node)) draft.warn(std::move(doubt));
}

}  // namespace

bool resolve_batch(Draft& draft, PlannedWorkload& job) {
  if (!draft.strategy_known) return false;
  const WorkloadSpec& workload = *draft.scenario().workload;
  if (!workload.batch_per_accelerator && !workload.global_batch) {
    draft.error("workload", "the workload has no batch",
                "batch_per_accelerator: 64, or global_batch: 1024");
    return false;
  }
  const std::size_t before = draft.errors.size();
  if (traits_of(job.strategy.kind).any_degrees)
    resolve_micro_batches(draft, job, workload);
  else
    resolve_passes(draft, job, workload);
  job.strategy.layout = layout_of(job);
  if (draft.errors.size() == before && cuts_the_model(job.strategy) && draft.workload_known)
    check_layout(draft, job, workload.strategy);
  if (draft.errors.size() == before && draft.workload_known) resolve_stages(draft, job);
  return draft.errors.size() == before;
}

}  // namespace reckon::planning
