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

const Fields<OverflowSpec>& overflow_fields() {
  using O = OverflowSpec;
  constexpr double kMostNodes = 1e6, kMostGpus = 64;
  static const Fields<O> table{
      required(number_field("nodes", &O::nodes, whole(1, kMostNodes), "At most at a time.", "16")),
      number_field("gpus", &O::gpus, whole(1, kMostGpus), "Of a node; default: 8.", "8"),
      number_field("wait", &O::wait, duration_from_zero(),
                   "A job that waited so long goes there; default: 1h.", "1h"),
      field<O>(
          "price", Form{Form::Kind::price},
          [](Reader& r, const YamlNode& n, O& o) { o.price = r.price(n); },
          "Of a node; default: unknown.", "24.50 USD/h"),
      number_field("provisioning_time", &O::provisioning_time, duration_from_zero(),
                   "From the request for a node until it takes jobs; default: 5min.", "5min"),
      number_field("scale_down_unneeded_time", &O::scale_down_unneeded_time, duration_from_zero(),
                   "Idle before it is given back; default: 10min.", "10min"),
      number_field("mean_time_to_reclaim", &O::mean_time_to_reclaim, duration_above_zero(),
                   "Of a spot node, until the provider takes it; default: it stays.", "12h"),
      number_field("checkpoint", &O::checkpoint, duration_from_zero(),
                   "A job whose node is taken goes on from the last multiple of it; default: it "
                   "starts again.",
                   "30min"),
  };
  return table;
}

void check_overflow(Reader& reader, const YamlNode& node, const OverflowSpec& overflow) {
  if (overflow.checkpoint && !overflow.mean_time_to_reclaim)
    reader.error(node.find("checkpoint")->key_at,
                 "no node is taken, so that no job goes on from a checkpoint",
                 "example: mean_time_to_reclaim: 12h");
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
      block_field<overflow_fields>("overflow", &S::overflow, check_overflow,
                                   "Nodes of a cloud for jobs that wait too long, of policies "
                                   "easy_backfill, sjf, slurm and kubernetes; default: none.",
                                   "{nodes: 16, wait: 2h, price: 24.50 USD/h}"),
  };
  return table;
}

}  // namespace reckon
