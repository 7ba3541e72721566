#include <fmt/format.h>

#include "sim/scenario/yaml/fields.h"

// `cluster.scheduler:`.
namespace reckon {

const Fields<SchedulerSpec>& scheduler_fields() {
  using S = SchedulerSpec;
  static const Fields<S> table{
      required(word_field(
          "policy", &S::policy,
          "fifo: in order of arrival; easy_backfill: later jobs start where they do not delay the "
          "first that waits; sjf: the same, the shortest first; srtf, las: the shortest remaining "
          "time, the least attained service first, and running jobs are suspended; slurm, kueue: "
          "these systems; fifo_perf: Gavel's; the others choose nodes for pods that stay.",
          "fgd")),
      number_field("time_per_iteration", &S::time_per_iteration, duration_above_zero(),
                   "Of Gavel: a round; default: 6min.", "6min"),
      number_field("minimum_time_between_allocation_resets",
                   &S::minimum_time_between_allocation_resets, duration_from_zero(),
                   "Of Gavel: between two decisions at least; default: 32min.", "32min"),
      block_field<slurm_fields>("slurm", &S::slurm, check_slurm,
                                "Priorities, partitions and limits of policy slurm, by the names "
                                "of slurm.conf and sacctmgr.",
                                "{PriorityWeightAge: 1000, PriorityWeightFairshare: 10000}"),
      block_field<kueue_fields>(
          "kueue", &S::kueue, check_kueue, "Quotas of policy kueue, by its own names.",
          "{clusterQueues: [{name: a, flavors: [{name: a100, nominalQuota: 8}]}]}"),
  };
  return table;
}

}  // namespace reckon
