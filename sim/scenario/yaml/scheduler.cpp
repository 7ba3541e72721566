#include <fmt/format.h>

#include "sim/scenario/yaml/fields.h"

// `cluster.scheduler:`.
namespace reckon {

namespace {

const Fields<KubernetesSpec>& kubernetes_fields() {
  using K = KubernetesSpec;
  static const Fields<K> table{
      word_field("scoringStrategy", &K::scoring,
                 "Of NodeResourcesFit: which node a pod gets; default: LeastAllocated.",
                 "MostAllocated"),
      word_field("preemptionPolicy", &K::preemption,
                 "Of the jobs' PriorityClasses; default: PreemptLowerPriority.", "Never"),
      number_field("checkpoint", &K::checkpoint, duration_from_zero(),
                   "A preempted job goes on from the last multiple of it; 0s: from where it was. "
                   "Default: it starts again.",
                   "30min"),
  };
  return table;
}

}  // namespace

const Fields<SchedulerSpec>& scheduler_fields() {
  using S = SchedulerSpec;
  static const Fields<S> table{
      required(word_field(
          "policy", &S::policy,
          "fifo: in order of arrival; easy_backfill: later jobs start where they do not delay the "
          "first that waits; sjf: the same, the shortest first; srtf, las: the shortest remaining "
          "time, the least attained service first, and running jobs are suspended; slurm, kueue, "
          "kubernetes: these systems; fifo_perf, max_min_fairness, finish_time_fairness, "
          "min_total_duration: Gavel's, with _perf aware of the kinds' throughputs; the others "
          "choose nodes for pods that stay.",
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
      block_field<kubernetes_fields>("kubernetes", &S::kubernetes, {},
                                     "kube-scheduler of policy kubernetes; the pods of a job "
                                     "start together. Default: its defaults.",
                                     "{scoringStrategy: MostAllocated}"),
  };
  return table;
}

}  // namespace reckon
